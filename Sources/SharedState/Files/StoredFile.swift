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
        var looks: [UInt64: @Sendable () -> Void] = [:]
        var lastLook: UInt64 = 0
        /// True if the file may have changed externally during a pending write.
        var isToLookAgain = false
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
            continuation.resume(with: waiting(write, coding, for: continuation.seen))
        } else {
            let (content, mark) = content()
            continuation.resume(with: reading(of: content, mark, coding, for: continuation.seen))
        }
    }

    func write<Value>(
        _ value: Value, _ coding: FileCoding<Value>, context: SaveContext, continuation: SaveContinuation
    ) {
        let write = FileWrites.Write(
            encode: { try coding.encode(value) }, seen: continuation.seen, isExplicit: context == .userInitiated,
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
        let look: @Sendable () -> Void = { self.readUntilAccepted(coding, subscriber) }
        let number = state.withLock { state in
            state.lastLook += 1
            state.looks[state.lastLook] = look
            return state.lastLook
        }
        let subscription = storage.watch(url, onChange: look)
        // The file may have changed between its load and now.
        look()
        return SharedSubscription { [self] in
            subscription.cancel()
            let removed = state.withLock { $0.looks.removeValue(forKey: number) }
            withExtendedLifetime(removed) {}
        }
    }

    /// Reads the file until the value accepts the content: repeats for each change of the value meanwhile.
    private func readUntilAccepted<Value>(_ coding: FileCoding<Value>, _ subscriber: SharedSubscriber<Value>) {
        while let begun = subscriber.beginReading({ self.readUntilAccepted(coding, subscriber) }) {
            // A pending write replaces earlier external writes.
            guard isAtRest() else { return }
            let (content, mark) = content()
            if let mark, subscriber.seen.isNewest(mark) { return }
            if subscriber.take(reading(of: content, mark, coding, for: subscriber.seen), begun) { return }
        }
    }

    /// True if no write is pending. Otherwise the file is checked again after the writes.
    private func isAtRest() -> Bool {
        state.withLock { state in
            guard state.writes.newest != nil else { return true }
            state.isToLookAgain = true
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
            if next == nil { lookAgain() }
            for continuation in write.continuations { continuation.resume(with: result) }
        }
    }

    private func lookAgain() {
        let looks = state.withLock { state -> [@Sendable () -> Void] in
            // If a new write has begun by now, its end does this.
            guard state.isToLookAgain, state.writes.newest == nil else { return [] }
            state.isToLookAgain = false
            return Array(state.looks.values)
        }
        for look in looks { look() }
    }

    private func perform(_ write: FileWrites.Write) -> Result<Void, any Error> {
        guard write.isAllowed else { return .failure(error(.notOverwritten)) }
        do {
            let data = try write.encode()
            try storage.replace(url, with: data)
            write.seen.recordContent(ObservedFileContent.mark(of: data), isProtected: false)
            return .success(())
        } catch {
            return .failure(self.error(.unwritable, error))
        }
    }

    /// Returns the content of a pending write as read by a value.
    private func waiting<Value>(
        _ write: FileWrites.Write, _ coding: FileCoding<Value>, for seen: ObservedFileContent
    ) -> VersionedRead<Value> {
        let data: Data
        do { data = try write.encode() } catch { return VersionedRead(.failure(self.error(.unreadable, error))) }
        do {
            return VersionedRead(.success(try decode(data, coding)))
        } catch {
            return VersionedRead(.failure(error)) { seen.protect() }
        }
    }

    /// Returns the content of the file as read by a value. The seen content is recorded when the value accepts it.
    private func reading<Value>(
        of content: Result<Data?, any Error>, _ mark: Int?, _ coding: FileCoding<Value>, for seen: ObservedFileContent
    ) -> VersionedRead<Value> {
        do {
            return VersionedRead(.success(try decode(try content.get(), coding))) {
                seen.recordContent(mark, isProtected: false)
            }
        } catch {
            return VersionedRead(.failure(error)) { seen.recordContent(mark, isProtected: true) }
        }
    }

    /// Returns the file's content with its mark; the mark is nil when the file cannot be read.
    private func content() -> (Result<Data?, any Error>, mark: Int?) {
        do {
            let data = try storage.read(url)
            return (.success(data), ObservedFileContent.mark(of: data))
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
