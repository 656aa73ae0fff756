internal import Platform
internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A file that holds a shared value.
///
/// Writing goes on in a thread for work that waits for disks, one write at a time; values that are set during a write become one further
/// write, of the newest. A file that could not be read is not replaced by a mere change of the value.
///
/// Whether what is read becomes the value is for the value to say (`SharedSubscriber.take`), which knows what was set
/// meanwhile. What is told of the file while a change is on its way to it is looked at when that is over.
final class StoredFile: Sendable {
    private struct State {
        var writes = FileWrites()
        /// What looks at the file for each value that follows it.
        var looks: [UInt64: @Sendable () -> Void] = [:]
        var lastLook: UInt64 = 0
        /// Whether the file may have become another while something was on its way to it.
        var isToLookAgain = false
    }

    private let url: URL
    private let storage: any FileStorage
    /// Where it is found, for as long as it lives.
    private let files: StoredFiles
    private let state = Mutex(State())

    init(_ url: URL, in storage: any FileStorage, of files: StoredFiles) {
        self.url = url
        self.storage = storage
        self.files = files
    }

    deinit { files.remove(ObjectIdentifier(self), for: url) }

    /// Whether something is on its way to it.
    var isBeingWritten: Bool { state.withLock { $0.writes.newest != nil } }

    /// Reads the value that is in the file, or on its way there; nil when there is no file, or an empty one.
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
        switch state.withLock({ $0.writes.add(write) }) {
        case .write: BlockingThreads.shared.run { self.writeAll() }
        case .queued: break
        case .refused: continuation.resume(throwing: error(.notOverwritten))
        }
    }

    /// Tells of what others write to the file: each time it is another than the one that was read or written here.
    func watch<Value>(
        _ coding: FileCoding<Value>, _ subscriber: SharedSubscriber<Value>
    ) -> SharedSubscription {
        let look: @Sendable () -> Void = { self.look(coding, subscriber) }
        let number = state.withLock { state in
            state.lastLook += 1
            state.looks[state.lastLook] = look
            return state.lastLook
        }
        let subscription = storage.watch(url, onChange: look)
        // It may have become another between its loading and now.
        look()
        return SharedSubscription { [self] in
            subscription.cancel()
            let removed = state.withLock { $0.looks.removeValue(forKey: number) }
            withExtendedLifetime(removed) {}
        }
    }

    /// Reads the file until what it has read could be taken: once more for each time that the value was changed meanwhile.
    private func look<Value>(_ coding: FileCoding<Value>, _ subscriber: SharedSubscriber<Value>) {
        while let begun = subscriber.beginReading({ self.look(coding, subscriber) }) {
            // What is on its way to the file takes the place of what others have written by then.
            guard isAtRest() else { return }
            let (content, mark) = content()
            if let mark, subscriber.seen.isNewest(mark) { return }
            if subscriber.take(reading(of: content, mark, coding, for: subscriber.seen), begun) { return }
        }
    }

    /// Whether nothing is on its way to the file; when there is, it is looked at again once that has come to its end.
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
            // Whoever waits for the last write finds nothing on its way, and has what others have written meanwhile.
            if next == nil { lookAgain() }
            for continuation in write.continuations { continuation.resume(with: result) }
        }
    }

    private func lookAgain() {
        let looks = state.withLock { state -> [@Sendable () -> Void] in
            // One that writes again by now does this at its end.
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
            write.seen.note(SeenContent.mark(of: data), isProtected: false)
            return .success(())
        } catch {
            return .failure(self.error(.unwritable, error))
        }
    }

    /// What a content that is on its way to the file is for a value.
    private func waiting<Value>(
        _ write: FileWrites.Write, _ coding: FileCoding<Value>, for seen: SeenContent
    ) -> Reading<Value> {
        let data: Data
        do { data = try write.encode() } catch { return Reading(.failure(self.error(.unreadable, error))) }
        do {
            return Reading(.success(try decode(data, coding)))
        } catch {
            return Reading(.failure(error)) { seen.protect() }
        }
    }

    /// What is in the file. What the value has seen of it is noted when it takes this.
    private func reading<Value>(
        of content: Result<Data?, any Error>, _ mark: Int?, _ coding: FileCoding<Value>, for seen: SeenContent
    ) -> Reading<Value> {
        do {
            return Reading(.success(try decode(try content.get(), coding))) { seen.note(mark, isProtected: false) }
        } catch {
            return Reading(.failure(error)) { seen.note(mark, isProtected: true) }
        }
    }

    /// The file's content, and what it is known by; nil when it cannot be read.
    private func content() -> (Result<Data?, any Error>, mark: Int?) {
        do {
            let data = try storage.read(url)
            return (.success(data), SeenContent.mark(of: data))
        } catch {
            return (.failure(self.error(.unreadable, error)), nil)
        }
    }

    private func decode<Value>(_ data: Data?, _ coding: FileCoding<Value>) throws(FileStorageError) -> Value? {
        // A file that was made and not yet written holds nothing.
        guard let data, !data.isEmpty else { return nil }
        do { return try coding.decode(data) } catch { throw self.error(.damaged, error) }
    }

    private func error(_ code: FileStorageError.Code, _ cause: (any Error)? = nil) -> FileStorageError {
        FileStorageError(code: code, path: url.path, cause: cause)
    }
}
