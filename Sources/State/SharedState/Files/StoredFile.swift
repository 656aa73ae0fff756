internal import Platform
internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A file that holds a shared value.
///
/// Writes run on a thread for blocking work, one at a time. Values set during a write cause one further write, of the
/// newest. A mere change of the value does not replace a file that could not be read.
///
/// The value decides whether a read content becomes the value (`SharedSubscriber.take`), because it knows the changes
/// made meanwhile. Notifications of the file during a pending write are handled after the write.
final class StoredFile: Sendable {
    /// The pending writes and the followers, under the lock.
    private struct State {
        var writes = FileWrites()
        /// The functions that check the file, one for each value that follows it.
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastObserver: UInt64 = 0
        /// True if the file may have changed externally during a pending write.
        var isRereadPending = false
    }

    private let url: URL
    private let storage: any FileStorage
    /// The table of the file, retained for the lifetime of the file.
    private let files: StoredFiles
    private let state = Mutex(State())

    init(_ url: URL, in storage: any FileStorage, of files: StoredFiles) {
        self.url = url
        self.storage = storage
        self.files = files
    }

    deinit { files.remove(ObjectIdentifier(self), for: url) }

    /// True while a write is pending.
    var isBeingWritten: Bool { state.withLock { $0.writes.newest != nil } }

    /// Reads the value from the file, or from a pending write; nil when the file is missing or empty.
    func load<Value>(_ coding: FileCoding<Value>, _ continuation: LoadContinuation<Value>) {
        if let write = state.withLock({ $0.writes.newest }) {
            continuation.resume(with: readPendingWrite(write, coding, for: continuation.observed))
        } else {
            let (content, contentHash) = content()
            continuation.resume(with: readResult(of: content, contentHash, coding, for: continuation.observed))
        }
    }

    func write<Value>(
        _ value: Value, _ coding: FileCoding<Value>, context: SaveContext, continuation: SaveContinuation
    ) {
        let write = FileWrites.Write(
            encode: { try coding.encode(value) }, observed: continuation.observed,
            isExplicit: context == .userInitiated,
            continuations: [continuation])
        switch state.withLock({ $0.writes.addWrite(write) }) {
        case .write: BlockingThreads.shared.run { self.writeAll() }
        case .queued: break
        case .refused: continuation.resume(throwing: error(.notOverwritten))
        }
    }

    /// Reports external writes to the file: each content that differs from the one last read or written here.
    func watch<Value>(
        _ coding: FileCoding<Value>, _ subscriber: SharedSubscriber<Value>
    ) -> SharedSubscription {
        let observer: @Sendable () -> Void = { self.readUntilAccepted(coding, subscriber) }
        let number = state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = observer
            return state.lastObserver
        }
        let subscription = storage.watch(url, onChange: observer)
        // The file may have changed between its load and now.
        observer()
        return SharedSubscription { [self] in
            subscription.cancel()
            let removed = state.withLock { $0.observers.removeValue(forKey: number) }
            withExtendedLifetime(removed) {}
        }
    }

    /// Reads the file until the value accepts the content: repeats for each change of the value meanwhile.
    private func readUntilAccepted<Value>(_ coding: FileCoding<Value>, _ subscriber: SharedSubscriber<Value>) {
        while let start = subscriber.beginRead({ self.readUntilAccepted(coding, subscriber) }) {
            // A pending write replaces earlier external writes.
            guard canReadNow() else { return }
            let (content, contentHash) = content()
            if let contentHash, subscriber.observed.isNewest(contentHash) { return }
            if subscriber.acceptRead(readResult(of: content, contentHash, coding, for: subscriber.observed), start) {
                return
            }
        }
    }

    /// True if no write is pending. Otherwise the file is checked again after the writes.
    private func canReadNow() -> Bool {
        state.withLock { state in
            guard state.writes.newest != nil else { return true }
            state.isRereadPending = true
            return false
        }
    }

    private func writeAll() {
        var next = state.withLock { $0.writes.next() }
        while let write = next {
            let result = perform(write)
            next = state.withLock { $0.writes.next() }
            // A caller that waits for the last write finds no pending write, and has the external writes made
            // meanwhile.
            if next == nil { reread() }
            for continuation in write.continuations { continuation.resume(with: result) }
        }
    }

    private func reread() {
        let observers = state.withLock { state -> [@Sendable () -> Void] in
            // If a new write has begun by now, its end does this.
            guard state.isRereadPending, state.writes.newest == nil else { return [] }
            state.isRereadPending = false
            return Array(state.observers.values)
        }
        for observer in observers { observer() }
    }

    private func perform(_ write: FileWrites.Write) -> Result<Void, any Error> {
        guard write.isAllowed else { return .failure(error(.notOverwritten)) }
        do {
            let data = try write.encode()
            try storage.replace(url, with: data)
            write.observed.recordContent(ObservedFileContent.contentHash(of: data), isProtected: false)
            return .success(())
        } catch {
            return .failure(self.error(.unwritable, error))
        }
    }

    /// Returns the content of a pending write as read by a value.
    private func readPendingWrite<Value>(
        _ write: FileWrites.Write, _ coding: FileCoding<Value>, for observed: ObservedFileContent
    ) -> VersionedRead<Value> {
        let data: Data
        do { data = try write.encode() } catch { return VersionedRead(.failure(self.error(.unreadable, error))) }
        do {
            return VersionedRead(.success(try decode(data, coding)))
        } catch {
            return VersionedRead(.failure(error)) { observed.protect() }
        }
    }

    /// Returns the content of the file as read by a value. The seen content is recorded when the value accepts it.
    private func readResult<Value>(
        of content: Result<Data?, any Error>, _ contentHash: Int?, _ coding: FileCoding<Value>,
        for observed: ObservedFileContent
    ) -> VersionedRead<Value> {
        do {
            return VersionedRead(.success(try decode(try content.get(), coding))) {
                observed.recordContent(contentHash, isProtected: false)
            }
        } catch {
            return VersionedRead(.failure(error)) { observed.recordContent(contentHash, isProtected: true) }
        }
    }

    /// Returns the file's content with its mark; the mark is nil when the file cannot be read.
    private func content() -> (Result<Data?, any Error>, contentHash: Int?) {
        do {
            let data = try storage.read(url)
            return (.success(data), ObservedFileContent.contentHash(of: data))
        } catch {
            return (.failure(self.error(.unreadable, error)), nil)
        }
    }

    private func decode<Value>(_ data: Data?, _ coding: FileCoding<Value>) throws(FileStorageError) -> Value? {
        // A file that was created and not yet written has no value.
        guard let data, !data.isEmpty else { return nil }
        do { return try coding.decode(data) } catch { throw self.error(.damaged, error) }
    }

    private func error(_ code: FileStorageError.Code, _ cause: (any Error)? = nil) -> FileStorageError {
        FileStorageError(code: code, path: url.path, cause: cause)
    }
}
