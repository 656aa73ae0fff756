#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Reads and writes the files of file storage keys; see ``SharedStore/init(files:)``. Called from any thread.
public protocol FileStorage: Sendable {
    /// Returns the file's bytes, nil when there is no file.
    func read(_ file: URL) throws -> Data?

    /// Replaces the content of the file atomically. Calls for one file are never concurrent.
    func replace(_ file: URL, with data: Data) throws

    /// Calls `onChange` whenever the file may have changed, from any thread, until the subscription is cancelled.
    /// Excess calls are harmless, because the file is then read and compared. By default it never calls.
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
/// New content is written to a file beside the old one, which then replaces it, so that a crash leaves one or the
/// other. Files have mode 0600 and created folders 0700: only their owner can read them.
public struct DiskFileStorage: FileStorage {
    private let isSecret: Bool

    /// Creates a storage for files without secrets: files that others can read or write are accepted.
    public init() { isSecret = false }

    /// A storage for files with secrets. A file that others can read or write is refused, with the command that
    /// corrects its mode.
    public static var secrets: DiskFileStorage { DiskFileStorage(isSecret: true) }

    private init(isSecret: Bool) { self.isSecret = isSecret }

    /// Returns the file's bytes, nil when there is no file. Throws the error of the system; for secrets also when
    /// others could read or write them.
    public func read(_ file: URL) throws -> Data? {
        if isSecret { return try PrivateFile.contents(file.path).map { Data($0) } }
        do {
            return try Data(contentsOf: file)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return nil
        }
    }

    /// Replaces the file, and creates missing folders. Afterwards only the owner can read the file, whatever its mode
    /// was.
    public func replace(_ file: URL, with data: Data) throws {
        try data.withUnsafeBytes { try PrivateFile.replace(file.path, with: $0) }
    }

    #if canImport(Glibc)
        /// On Linux: is notified by the system, through `inotify`. On other systems files are not watched.
        ///
        /// Links are followed, and each folder on the path is watched too, so that its replacement is noticed.
        /// `onChange` may take long.
        ///
        /// Not noticed: changes on a network file system by another machine, and changes in a folder that may not be
        /// read or for which the system has no watches left (`fs.inotify.max_user_watches`).
        public func watch(_ file: URL, onChange: @escaping @Sendable () -> Void) -> SharedSubscription {
            let watch = FolderWatches.shared.addWatch(file.path, onChange)
            return SharedSubscription { watch.cancel() }
        }
    #endif
}
