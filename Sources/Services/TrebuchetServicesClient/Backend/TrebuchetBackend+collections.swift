internal import Platform
public import SharedState
internal import TrebuchetClient

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension TrebuchetBackend {
    /// Stores pending writes and read results of collections. After a restart the results are shown before there is a
    /// connection. They are marked as `isStale` until the server has sent newer ones.
    ///
    /// Call it before a collection is used. Writes are stored as ``persistPendingWrites(in:files:)`` says. Results are written
    /// within a second, and when the backend is closed. The newest result of each account, collection and query is kept; of all
    /// of those, the most recently used. A damaged file is ignored. Signing an account out removes its results; its pending
    /// writes stay.
    ///
    /// - Parameters:
    ///   - folder: a folder for this backend only, and for one server. It is created with mode 0700 when it is missing.
    ///   - limit: bytes of all results; they have at most 1,000 files. Default 64 MiB.
    ///   - log: receives lines about files that are damaged or could not be written. Default: standard error.
    public func enableOfflineStorage(
        in folder: URL, limit: Int = 64 << 20, log: (@Sendable (String) -> Void)? = nil
    ) {
        persistPendingWrites(in: folder)
        let log = log ?? { StandardStream.error.write(soon: "trebuchet: \($0)") }
        collections.storeResults { QueryResultCache(in: $0, server: client.address, limit: limit, log: log) }
    }

    /// Stores pending writes to collections in a folder, one file for each account and collection. After a restart they are
    /// sent when their author first uses the collection. Without this call they are kept in memory.
    ///
    /// Call it before a collection is used. A write is in its file before it is shown. When stored writes cannot be read, the
    /// collection has an error and accepts no other writes; each write tries to read them again.
    ///
    /// A folder belongs to one backend at a time, until it is closed or its process ends. Another backend gets
    /// ``CollectionError/pendingNotPersisted(_:)``, which names the process. Custom storages are not locked.
    ///
    /// Files that other users of the machine can read or write are refused: a user that reads them can write as this client.
    ///
    /// - Parameter files: Default: the disk, with files that only their owner can read.
    public func persistPendingWrites(in folder: URL, files: any FileStorage = DiskFileStorage.secrets) {
        collections.storeWrites(in: folder, files)
    }

    /// Closes the backend. It sends pending writes if that takes at most two seconds, stores results, closes the client and
    /// unlocks the folder. Unsent writes stay in their files.
    public func close() async {
        if client.connectionState.currentValue == .connected {
            await collections.waitUntilSent(client, within: .seconds(2))
        }
        await client.close()
        collections.close()
    }
}
