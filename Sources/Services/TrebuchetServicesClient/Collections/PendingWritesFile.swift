internal import Bytes
internal import SharedState
internal import TrebuchetWire

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The file with the pending writes of one account to one collection; they are sent after a restart.
struct PendingWritesFile: Sendable {
    let url: URL
    let folder: OfflineFolder

    init(_ collection: String, of account: ClientAccount, in folder: OfflineFolder) {
        let parent = account.folder.map { folder.url.appendingPathComponent($0) } ?? folder.url
        url = parent.appendingPathComponent("\(collection).json")
        self.folder = folder
    }

    /// Returns nil when there is no file.
    func read() throws(CollectionError) -> PendingWrites? {
        try folder.lock()
        do {
            guard let data = try folder.files.read(url) else { return nil }
            let writes = try Array(data).withUnsafeBytes {
                try ValueCoder().decode(PendingWrites.self, from: $0)
            }
            guard writes.isSound else { throw ValueError("its numbers are not valid for a client") }
            return writes
        } catch {
            throw .pendingNotPersisted("\(url.path) cannot be read and is not changed: \(error)")
        }
    }

    func replace(_ writes: PendingWrites) throws(CollectionError) {
        try folder.lock()
        do {
            var buffer = ByteBuffer()
            try ValueCoder().encode(writes, into: &buffer)
            try folder.files.replace(url, with: Data(buffer.bytes))
        } catch {
            throw .pendingNotPersisted("\(url.path) cannot be written: \(error)")
        }
    }
}
