internal import SharedState
internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The folder in which a backend keeps what waits and what was read: that backend's alone, as long as it is open.
final class OfflineFolder: Sendable {
    private enum State {
        case open
        case taken(FolderLock)
        case closed
    }

    let url: URL
    let files: any FileStorage
    private let state = Mutex(State.open)

    init(_ url: URL, _ files: any FileStorage) {
        self.url = url
        self.files = files
    }

    /// Takes the folder, unless it has it. While somebody else has it, each call tries again.
    func take() throws(CollectionError) {
        // Other storages than the disk have no folders: who has one of his own keeps it apart.
        guard files is DiskFileStorage else { return }
        try state.withLock { state throws(CollectionError) in
            switch state {
            case .taken: return
            case .closed: throw .pendingNotKept("\(url.path) is not used any more: the backend was closed")
            case .open:
                do throws(FolderLock.Failure) {
                    state = .taken(try FolderLock(url.path))
                } catch {
                    throw .pendingNotKept("\(error)")
                }
            }
        }
    }

    /// Lets others have the folder. Nothing is written to it afterwards.
    func close() {
        state.withLock { state in
            if case .taken(let lock) = state { lock.release() }
            state = .closed
        }
    }
}
