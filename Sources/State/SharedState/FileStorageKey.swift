#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A key whose value is stored in a file; see ``SharedReaderKey/fileStorage(_:)``.
public struct FileStorageKey<Value: Sendable>: SharedKey {
    /// Identifies the file.
    public struct ID: Hashable, Sendable {
        let file: URL
    }

    /// The path of the file. Keys with the same path and type share their value. A link to a file is a different path;
    /// its value follows that of the file where files are watched.
    public let id: ID
    private let coding: FileCoding<Value>

    init(_ file: URL, _ coding: FileCoding<Value>) {
        id = ID(file: file.standardizedFileURL)
        self.coding = coding
    }

    /// Reads the file synchronously, so that the wrapper begins with its content.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        file.load(coding, continuation)
    }

    /// Watches the file, if its storage supports that. Writes of other programs become the value; after a removal of
    /// the file, the value is the initial one. A pending change of this process takes precedence over external writes
    /// meanwhile, and replaces them. External writes after that, or after its failure, become the value.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        file.watch(coding, subscriber)
    }

    /// Replaces the file in the background. A change that waits behind another write is dropped when a newer one
    /// comes.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        file.write(value, coding, context: context, continuation: continuation)
    }

    private var file: StoredFile { SharedStore.current.files.file(id.file) }
}

extension FileStorageKey: CustomStringConvertible {
    public var description: String { ".fileStorage(\(id.file.absoluteString))" }
}

extension SharedReaderKey {
    /// Stores the value in a file, as JSON.
    ///
    /// The file is read when the first wrapper is created. After changes it is replaced as a whole, in the background;
    /// changes during a write are combined. `save()` waits until a change is in the file. External writes to the file
    /// are noticed if its storage can watch it, as the disk storage can on Linux.
    ///
    /// A missing or empty file has no value: the value is the initial one. A file that cannot be read or decoded
    /// causes a ``FileStorageError`` in `loadError`, and the value is the initial one too, or stays. The file is then
    /// preserved: changes fail with ``FileStorageError/Code/notOverwritten`` in `saveError` until `load()` has read
    /// it, or until `save()` replaces it explicitly.
    public static func fileStorage<Value: Codable & Sendable>(_ file: URL) -> Self where Self == FileStorageKey<Value> {
        FileStorageKey(file, .json)
    }

    /// Stores the value in a file, in a custom format. Otherwise like ``fileStorage(_:)``.
    ///
    /// Keys of one file and one type share their value: the first of them determines the format.
    ///
    /// - Parameters:
    ///   - decode: Decodes a value from the file's bytes. If it throws, the file counts as damaged.
    ///   - encode: Encodes a value as the file's bytes. Called in the background.
    public static func fileStorage<Value: Sendable>(
        _ file: URL, decode: @escaping @Sendable (Data) throws -> Value,
        encode: @escaping @Sendable (Value) throws -> Data
    ) -> Self where Self == FileStorageKey<Value> {
        FileStorageKey(file, FileCoding(decode: decode, encode: encode))
    }
}
