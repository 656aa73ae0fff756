internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The files of a store, each known once: a value that is set, dropped and read again is not read past its own write.
final class StoredFiles: Sendable {
    private let storage: any FileStorage
    private let files = Mutex<[URL: StoredFile]>([:])

    init(in storage: any FileStorage) { self.storage = storage }

    func file(_ url: URL) -> StoredFile {
        files.withLock { files in
            if let file = files[url] { return file }
            let file = StoredFile(url, in: storage)
            files[url] = file
            return file
        }
    }
}
