internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The files of a store, one object each while it is followed or written, so that a value that is set, released and
/// read again includes its own write.
final class StoredFiles: Sendable {
    private let storage: any FileStorage
    private let files = Mutex<[URL: WeakEntry]>([:])

    init(in storage: any FileStorage) { self.storage = storage }

    /// The number of files that are followed or written.
    var count: Int { files.withLock { $0.count } }

    func file(_ url: URL) -> StoredFile {
        files.withLock { files in
            if let file = files[url]?.object as? StoredFile { return file }
            let file = StoredFile(url, in: storage, of: self)
            files[url] = WeakEntry(file)
            return file
        }
    }

    /// Removes a file that is no longer followed or written. There may be a new one by then.
    func remove(_ file: ObjectIdentifier, for url: URL) {
        files.withLock { files in
            if files[url]?.identity == file { files[url] = nil }
        }
    }
}

/// A weak reference in a table.
///
/// A class: Swift 6.3 crashes when it copies an optional struct with a weak reference that is nil.
final class WeakEntry: Sendable {
    weak let object: (any AnyObject & Sendable)?
    let identity: ObjectIdentifier

    init(_ object: any AnyObject & Sendable) {
        self.object = object
        identity = ObjectIdentifier(object)
    }
}
