internal import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Files in memory, for tests and previews.
public final class InMemoryFileStorage: FileStorage {
    /// The files and their watches, under the lock.
    private struct State {
        var files: [URL: Data]
        var watches: [URL: [UInt64: @Sendable () -> Void]] = [:]
        var lastWatch: UInt64 = 0
    }

    private let state: Mutex<State>

    /// Creates a storage.
    ///
    /// - Parameter files: the initial files. Default: none.
    public init(_ files: [URL: Data] = [:]) { state = Mutex(State(files: files)) }

    /// Returns the file's bytes, nil when there is no file. URLs are compared as they are written.
    public func read(_ file: URL) -> Data? { state.withLock { $0.files[file] } }

    /// Replaces or creates the file, and notifies its watchers before it returns. Never fails.
    public func replace(_ file: URL, with data: Data) { change(file, to: data) }

    /// Removes the file, and notifies its watchers before it returns.
    public func remove(_ file: URL) { change(file, to: nil) }

    /// Calls `onChange` after each change of the file, on the thread that changes it.
    public func watch(_ file: URL, onChange: @escaping @Sendable () -> Void) -> SharedSubscription {
        let number = state.withLock { state in
            state.lastWatch += 1
            state.watches[file, default: [:]][state.lastWatch] = onChange
            return state.lastWatch
        }
        return SharedSubscription { [weak self] in
            let removed = self?.state.withLock { $0.watches[file]?.removeValue(forKey: number) }
            withExtendedLifetime(removed) {}
        }
    }

    private func change(_ file: URL, to data: Data?) {
        let watches = state.withLock { state in
            state.files[file] = data
            return Array((state.watches[file] ?? [:]).values)
        }
        for watch in watches { watch() }
    }
}
