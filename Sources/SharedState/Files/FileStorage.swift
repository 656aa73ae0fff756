#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What file storage keys read and write; see ``SharedStore/init(files:)``. Called from any thread.
public protocol FileStorage: Sendable {
    /// The file's bytes, nil when there is no file.
    func read(_ file: URL) throws -> Data?

    /// Puts the bytes in the place of the file, as a whole or not at all. For one file, called once at a time.
    func replace(_ file: URL, with data: Data) throws

    /// Calls `onChange` whenever the file may be another, from any thread, until the subscription is cancelled. Calls too many
    /// do no harm: the file is read then and compared. Default: never.
    func watch(_ file: URL, onChange: @escaping @Sendable () -> Void) -> SharedSubscription
}

extension FileStorage {
    /// Never calls `onChange`.
    public func watch(_ file: URL, onChange: @escaping @Sendable () -> Void) -> SharedSubscription {
        SharedSubscription()
    }
}

/// The files of the disk.
///
/// A new content is written beside the old one and takes its name, so a crash leaves the one or the other. Files have mode
/// 0600 and folders that were missing 0700: their owner alone can read them.
public struct DiskFileStorage: FileStorage {
    private let isSecret: Bool

    /// For files that are no secrets: one that others can read or write is taken too.
    public init() { isSecret = false }

    /// For files that hold secrets: one that others can read or write is refused, with the command that mends it.
    public static var secrets: DiskFileStorage { DiskFileStorage(isSecret: true) }

    private init(isSecret: Bool) { self.isSecret = isSecret }

    /// The file's bytes, nil when there is no file. Throws what the system says, and for secrets when others could read or
    /// write them.
    public func read(_ file: URL) throws -> Data? {
        if isSecret { return try PrivateFile.contents(file.path).map { Data($0) } }
        do {
            return try Data(contentsOf: file)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return nil
        }
    }

    /// Makes the folder too if it is missing. The file is the owner's alone then, whatever it was before.
    public func replace(_ file: URL, with data: Data) throws {
        try data.withUnsafeBytes { try PrivateFile.replace(file.path, with: $0) }
    }

    #if canImport(Glibc)
        /// On Linux: is told by the system, by `inotify`. On other systems files are not watched.
        ///
        /// Links are followed, and each folder on the way is watched too: one that is replaced is noticed. `onChange` may take long.
        ///
        /// Not told of: a change on a network file system by another machine, and what changes in a folder that may not be read or
        /// for which the system has no watches left (`fs.inotify.max_user_watches`).
        public func watch(_ file: URL, onChange: @escaping @Sendable () -> Void) -> SharedSubscription {
            let watch = FolderWatches.shared.add(file.path, onChange)
            return SharedSubscription { watch.cancel() }
        }
    #endif
}
