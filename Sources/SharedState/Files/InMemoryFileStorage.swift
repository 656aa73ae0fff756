internal import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Files that are nowhere but in memory, for tests and previews.
public final class InMemoryFileStorage: FileStorage {
    private let files: Mutex<[URL: Data]>

    public init(_ files: [URL: Data] = [:]) { self.files = Mutex(files) }

    public func read(_ file: URL) -> Data? { files.withLock { $0[file] } }

    public func replace(_ file: URL, with data: Data) { files.withLock { $0[file] = data } }
}
