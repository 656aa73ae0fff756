internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A file that holds a shared value.
///
/// Writing goes on in a task of its own, one write at a time; values that are set during a write become one further
/// write, of the newest. A file that could not be read is not replaced by a mere change of the value.
final class StoredFile: Sendable {
    private let url: URL
    private let storage: any FileStorage
    private let writes = Mutex(FileWrites())

    init(_ url: URL, in storage: any FileStorage) {
        self.url = url
        self.storage = storage
    }

    /// The value in the file, or on its way there; nil when there is no file, or an empty one.
    func read<Value>(_ coding: FileCoding<Value>) throws(FileStorageError) -> Value? {
        do throws(FileStorageError) {
            let value = try decode(try bytes(), coding)
            writes.withLock { $0.isProtected = false }
            return value
        } catch {
            writes.withLock { $0.isProtected = true }
            throw error
        }
    }

    func write<Value>(
        _ value: Value, _ coding: FileCoding<Value>, context: SaveContext, continuation: SaveContinuation
    ) {
        let write = FileWrites.Write(encode: { try coding.encode(value) }, continuations: [continuation])
        switch writes.withLock({ $0.add(write, context) }) {
        case .write: Task.detached(priority: .utility) { self.writeAll() }
        case .queued: break
        case .refused: continuation.resume(throwing: error(.notOverwritten))
        }
    }

    /// Tells of what others write to the file: each time it is another than the one that was read or written here.
    func watch<Value>(
        _ coding: FileCoding<Value>, _ subscriber: SharedSubscriber<Value>
    ) -> SharedSubscription {
        storage.watch(url) { self.look(coding, subscriber) }
    }

    private func look<Value>(_ coding: FileCoding<Value>, _ subscriber: SharedSubscriber<Value>) {
        // What is on its way to the file takes the place of what others have written.
        guard writes.withLock({ $0.newest == nil }) else { return }
        do throws(FileStorageError) {
            let data = try stored()
            guard note(data) else { return }
            let value = try decode(data, coding)
            writes.withLock { $0.isProtected = false }
            guard let value else { return subscriber.yieldReturningInitialValue() }
            subscriber.update { [self] current in
                // Set meanwhile: that is newer.
                if writes.withLock({ $0.newest == nil }) { current = value }
            }
        } catch {
            writes.withLock { $0.isProtected = true }
            subscriber.yield(throwing: error)
        }
    }

    private func writeAll() {
        while let write = writes.withLock({ $0.next() }) {
            let result: Result<Void, any Error>
            do {
                let data = try write.encode()
                _ = note(data)
                result = .success(try storage.replace(url, with: data))
            } catch {
                result = .failure(self.error(.unwritable, error))
            }
            for continuation in write.continuations { continuation.resume(with: result) }
        }
    }

    private func bytes() throws(FileStorageError) -> Data? {
        if let write = writes.withLock({ $0.newest }) {
            do { return try write.encode() } catch { throw self.error(.unreadable, error) }
        }
        let data = try stored()
        _ = note(data)
        return data
    }

    /// False when the content is the one that was read or written last.
    private func note(_ data: Data?) -> Bool {
        let mark = FileWrites.mark(of: data)
        return writes.withLock { $0.note(mark) }
    }

    private func stored() throws(FileStorageError) -> Data? {
        do { return try storage.read(url) } catch { throw self.error(.unreadable, error) }
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
