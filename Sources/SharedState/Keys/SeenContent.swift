internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// What a value has seen of the file that it is kept in.
///
/// It belongs to the value, whose loads, subscription and saves all have it: so each value knows for itself what is news to it,
/// however many are kept in one file.
final class SeenContent: Sendable {
    private struct State {
        var mark: Int?
        var isProtected = false
    }

    private let state = Mutex(State())

    /// What a file's content is known by.
    static func mark(of data: Data?) -> Int {
        var hasher = Hasher()
        hasher.combine(data == nil)
        // The hash of `Data` is one of its beginning alone.
        data?.withUnsafeBytes { hasher.combine(bytes: $0) }
        return hasher.finalize()
    }

    /// Whether the file could not be read when it was last, so that only an explicit save may replace it.
    var isProtected: Bool { state.withLock { $0.isProtected } }

    /// Whether it is the content that became the value, or was written for it, last.
    func isNewest(_ mark: Int) -> Bool { state.withLock { $0.mark == mark } }

    func protect() { state.withLock { $0.isProtected = true } }

    /// - Parameter mark: nil when what is in the file is not known.
    func note(_ mark: Int?, isProtected: Bool) { state.withLock { $0 = State(mark: mark, isProtected: isProtected) } }
}
