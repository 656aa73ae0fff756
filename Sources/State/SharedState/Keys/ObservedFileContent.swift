internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The file content that a value has seen.
///
/// It belongs to the value, and its loads, subscription and saves share it. So each value knows which content is new
/// to it, however many values are stored in one file.
final class ObservedFileContent: Sendable {
    /// The mark of the last content, under the lock.
    private struct State {
        var contentHash: Int?
        var isProtected = false
    }

    private let state = Mutex(State())

    /// Returns the mark that identifies a file's content.
    static func contentHash(of data: Data?) -> Int {
        var hasher = Hasher()
        hasher.combine(data == nil)
        // `Data` hashes only its beginning.
        data?.withUnsafeBytes { hasher.combine(bytes: $0) }
        return hasher.finalize()
    }

    /// True if the last read of the file failed, so that only an explicit save may replace it.
    var isProtected: Bool { state.withLock { $0.isProtected } }

    /// Returns true for the content that became the value, or was written for it, last.
    func isNewest(_ contentHash: Int) -> Bool { state.withLock { $0.contentHash == contentHash } }

    func protect() { state.withLock { $0.isProtected = true } }

    /// Records a content.
    ///
    /// - Parameter contentHash: nil when the content of the file is unknown.
    func recordContent(_ contentHash: Int?, isProtected: Bool) {
        state.withLock { $0 = State(contentHash: contentHash, isProtected: isProtected) }
    }
}
