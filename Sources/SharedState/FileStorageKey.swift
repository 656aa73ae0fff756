#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A value that is kept in a file, as JSON; see ``SharedReaderKey/fileStorage(_:)``.
public struct FileStorageKey<Value: Codable & Sendable>: SharedKey {
    /// The file.
    public struct ID: Hashable, Sendable {
        let file: URL
    }

    /// The file: keys of one file and one type share their value.
    public let id: ID

    /// Reads the file at once, so that the wrapper begins with what is in it.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        continuation.resume(with: Result { try file.read(Value.self) })
    }

    /// The file is not watched: what others write to it is seen by the next `load()`.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        SharedSubscription()
    }

    /// Replaces the file in the background; a change that waits behind another write is left out when a newer one comes.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        file.write(value, context: context, continuation: continuation)
    }

    private var file: StoredFile { SharedStore.current.files.file(id.file) }
}

extension SharedReaderKey {
    /// Keeps the value in a file, as JSON.
    ///
    /// The file is read when the first wrapper is made, and replaced as a whole after changes, in the background;
    /// changes that come during a write become one. To wait until a change is in the file, call `save()`.
    ///
    /// A file that cannot be read or decoded is a ``FileStorageError`` in `loadError`, and the value is the initial one.
    /// The file then stays as it is: changes fail with ``FileStorageError/Code/notOverwritten`` in `saveError` until
    /// `load()` has read it, or until `save()` replaces it on purpose.
    public static func fileStorage<Value>(_ file: URL) -> Self where Self == FileStorageKey<Value> {
        FileStorageKey(id: FileStorageKey.ID(file: file.standardizedFileURL))
    }
}
