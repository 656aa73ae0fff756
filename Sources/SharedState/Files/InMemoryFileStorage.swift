internal import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Files that are nowhere but in memory, for tests and previews.
public final class InMemoryFileStorage: FileStorage {
    private let files: Mutex<[URL: Data]>

    /// - Parameter files: those that are there from the beginning. Default: none.
    public init(_ files: [URL: Data] = [:]) { self.files = Mutex(files) }

    /// The file's bytes, nil when there is no file. URLs are compared as they are written.
    public func read(_ file: URL) -> Data? { files.withLock { $0[file] } }

    /// Replaces the file, or makes it. Never fails.
    public func replace(_ file: URL, with data: Data) { files.withLock { $0[file] = data } }
}
