internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A file that holds a shared value as JSON.
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

    /// The value in the file, or on its way there; nil when there is no file.
    func read<Value: Decodable>(_ type: Value.Type) throws(FileStorageError) -> Value? {
        do throws(FileStorageError) {
            let value = try decode(type, from: try bytes())
            writes.withLock { $0.isProtected = false }
            return value
        } catch {
            writes.withLock { $0.isProtected = true }
            throw error
        }
    }

    func write<Value: Encodable & Sendable>(
        _ value: Value, context: SaveContext, continuation: SaveContinuation
    ) {
        let encode = { @Sendable in
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return try encoder.encode(value)
        }
        let write = FileWrites.Write(encode: encode, continuations: [continuation])
        switch writes.withLock({ $0.add(write, context) }) {
        case .write: Task.detached(priority: .utility) { self.writeAll() }
        case .queued: break
        case .refused: continuation.resume(throwing: error(.notOverwritten))
        }
    }

    private func writeAll() {
        while let write = writes.withLock({ $0.next() }) {
            let result: Result<Void, any Error>
            do {
                result = .success(try storage.replace(url, with: try write.encode()))
            } catch {
                result = .failure(self.error(.unwritable, error))
            }
            for continuation in write.continuations { continuation.resume(with: result) }
        }
    }

    private func bytes() throws(FileStorageError) -> Data? {
        do {
            if let write = writes.withLock({ $0.newest }) { return try write.encode() }
            return try storage.read(url)
        } catch {
            throw self.error(.unreadable, error)
        }
    }

    private func decode<Value: Decodable>(
        _ type: Value.Type, from data: Data?
    ) throws(FileStorageError) -> Value? {
        do {
            return try data.map { try JSONDecoder().decode(type, from: $0) }
        } catch {
            throw self.error(.damaged, error)
        }
    }

    private func error(_ code: FileStorageError.Code, _ cause: (any Error)? = nil) -> FileStorageError {
        FileStorageError(code: code, path: url.path, cause: cause)
    }
}
