public import SharedState

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension TrebuchetBackend {
    /// Keeps writes to collections that wait in a folder, one file for each collection, so that they are sent after a
    /// restart: when the collection is first used. Without this they are kept in memory.
    ///
    /// Call it before a collection is used. A folder belongs to one process at a time. A write is in its file before it is
    /// shown. Writes that cannot be read are an error in the collection, which then takes no others.
    ///
    /// Files that others on the machine can read or write are refused: who reads them can write as this client.
    ///
    /// - Parameter files: Default: the disk, with files for their owner alone.
    public func keepPendingWrites(in folder: URL, files: any FileStorage = DiskFileStorage.secrets) {
        collections.keepWrites(in: folder, files)
    }
}
