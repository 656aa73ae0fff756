internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The files of a store, each known once while it is followed or written: a value that is set, dropped and read again is not read
/// past its own write.
final class StoredFiles: Sendable {
    private let storage: any FileStorage
    private let files = Mutex<[URL: WeakEntry]>([:])

    init(in storage: any FileStorage) { self.storage = storage }

    /// How many are followed or written.
    var count: Int { files.withLock { $0.count } }

    func file(_ url: URL) -> StoredFile {
        files.withLock { files in
            if let file = files[url]?.object as? StoredFile { return file }
            let file = StoredFile(url, in: storage, of: self)
            files[url] = WeakEntry(file)
            return file
        }
    }

    /// Called as a file goes that nobody follows or writes any more. By then there may be a new one.
    func remove(_ file: ObjectIdentifier, for url: URL) {
        files.withLock { files in
            if files[url]?.identity == file { files[url] = nil }
        }
    }
}

/// What a table finds without keeping it.
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
