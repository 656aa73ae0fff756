public import SharedState
public import Trebuchet

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension TrebuchetBackend {
    /// Keeps what is written to collections, until it is sent, and what was read of them, to be shown after a restart before
    /// there is a connection: marked as `isStale`, until the server says more.
    ///
    /// Call it before a collection is used. Writes are kept as ``keepPendingWrites(in:files:)`` says. What was read is kept a
    /// second later at the latest, and when the backend is closed: for each account, collection and query the newest, and of
    /// all those the ones that were used last. A file that is damaged is as none. What an account has read is removed when it is
    /// signed out; writes of it that wait stay.
    ///
    /// - Parameters:
    ///   - folder: this backend's alone, and for one server. Made for the user alone (mode 0700) when it is missing.
    ///   - limit: bytes of all that was read; in 1,000 files at most. Default 64 MiB.
    ///   - log: hears of files that are damaged or could not be written. Default: standard error.
    public func keepOffline(
        in folder: URL, limit: Int = 64 << 20, log: @escaping @Sendable (String) -> Void = ServerLog.standardError
    ) {
        keepPendingWrites(in: folder)
        collections.keepResults { KeptResults(in: $0, server: client.address, limit: limit, log: log) }
    }

    /// Keeps writes to collections that wait in a folder, one file for each account and collection, so that they are sent after a
    /// restart: when the collection is first used by who made them. Without this they are kept in memory.
    ///
    /// Call it before a collection is used. A write is in its file before it is shown. Writes that cannot be read are an error
    /// in the collection, which then takes no others; they are tried again with each write.
    ///
    /// A folder belongs to one backend at a time, until it is closed or its process ends. Another one that is to use it gets
    /// ``CollectionError/pendingNotKept(_:)``, which names the process. Storages of your own are not locked.
    ///
    /// Files that others on the machine can read or write are refused: who reads them can write as this client.
    ///
    /// - Parameter files: Default: the disk, with files for their owner alone.
    public func keepPendingWrites(in folder: URL, files: any FileStorage = DiskFileStorage.secrets) {
        collections.keepWrites(in: folder, files)
    }

    /// Ends the use of a backend: sends what waits if that can be done within two seconds, writes what was read, closes the client
    /// and lets go of the folder. Writes that are not sent by then stay in their files.
    public func close() async {
        if client.connectionState.currentValue == .connected {
            await collections.waitUntilSent(client, within: .seconds(2))
        }
        await client.close()
        collections.close()
    }
}
