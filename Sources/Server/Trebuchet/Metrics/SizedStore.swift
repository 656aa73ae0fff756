package import TrebuchetActors

/// A store in a file, whose size is a metric.
package protocol SizedStore: StateStore {
    /// Returns the size of the file with its log, and the free space of its disk; nil if they cannot be read.
    func fileUsage() -> StoreFileUsage?
}

/// The size of a store's file, and the space that it can still take.
package struct StoreFileUsage: Sendable {
    /// The size of the file and of its log in bytes.
    package let bytes: Int
    /// The free space of the disk in bytes, for processes without privileges.
    package let freeBytes: Int

    package init(bytes: Int, freeBytes: Int) {
        self.bytes = bytes
        self.freeBytes = freeBytes
    }
}
