internal import SharedState
internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The folder of a backend's pending writes and results. Only one backend may use it while it is open.
final class OfflineFolder: Sendable {
    private enum State {
        case open
        case locked(FolderLock)
        case closed
    }

    let url: URL
    let files: any FileStorage
    private let state = Mutex(State.open)

    init(_ url: URL, _ files: any FileStorage) {
        self.url = url
        self.files = files
    }

    /// Locks the folder, unless it is locked already. While another backend has it, each call tries again.
    func lock() throws(CollectionError) {
        // Only the disk has folders; an app with a custom storage must separate its backends itself.
        guard files is DiskFileStorage else { return }
        try state.withLock { state throws(CollectionError) in
            switch state {
            case .locked: return
            case .closed: throw .pendingNotPersisted("\(url.path) is no longer used: the backend was closed")
            case .open:
                do throws(FolderLock.Failure) {
                    state = .locked(try FolderLock(url.path))
                } catch {
                    throw .pendingNotPersisted("\(error)")
                }
            }
        }
    }

    /// Unlocks the folder. Later writes to it fail.
    func close() {
        state.withLock { state in
            if case .locked(let lock) = state { lock.release() }
            state = .closed
        }
    }
}
