#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A value that is kept in a file; see ``SharedReaderKey/fileStorage(_:)``.
public struct FileStorageKey<Value: Sendable>: SharedKey {
    /// The file.
    public struct ID: Hashable, Sendable {
        let file: URL
    }

    /// The path of the file: keys of one path and one type share their value. A link to a file is another path, whose value follows
    /// that of the file where files are watched.
    public let id: ID
    private let coding: FileCoding<Value>

    init(_ file: URL, _ coding: FileCoding<Value>) {
        id = ID(file: file.standardizedFileURL)
        self.coding = coding
    }

    /// Reads the file at once, so that the wrapper begins with what is in it.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        file.load(coding, continuation)
    }

    /// Watches the file, where its storage can: what others write to it becomes the value, and when it is removed, the initial
    /// value does. A change that is on its way to the file stands against what others write meanwhile, and replaces it; what they
    /// write after that, or when it fails, becomes the value.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        file.watch(coding, subscriber)
    }

    /// Replaces the file in the background; a change that waits behind another write is left out when a newer one comes.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        file.write(value, coding, context: context, continuation: continuation)
    }

    private var file: StoredFile { SharedStore.current.files.file(id.file) }
}

extension FileStorageKey: CustomStringConvertible {
    public var description: String { ".fileStorage(\(id.file.absoluteString))" }
}

extension SharedReaderKey {
    /// Keeps the value in a file, as JSON.
    ///
    /// The file is read when the first wrapper is made, and replaced as a whole after changes, in the background;
    /// changes that come during a write become one. To wait until a change is in the file, call `save()`. What others write to
    /// the file is noticed where its storage can watch it, as the disk's can on Linux.
    ///
    /// A file that is missing or empty holds nothing: the value is the initial one. A file that cannot be read or decoded is a
    /// ``FileStorageError`` in `loadError`, and the value is the initial one too, or stays.
    /// The file then stays as it is: changes fail with ``FileStorageError/Code/notOverwritten`` in `saveError` until
    /// `load()` has read it, or until `save()` replaces it on purpose.
    public static func fileStorage<Value: Codable & Sendable>(_ file: URL) -> Self where Self == FileStorageKey<Value> {
        FileStorageKey(file, .json)
    }

    /// Keeps the value in a file, in a form of your own. For all else see ``fileStorage(_:)``.
    ///
    /// Keys of one file and one type share their value: the first of them says the form.
    ///
    /// - Parameters:
    ///   - decode: The value of a file's bytes. What it throws makes the file a damaged one.
    ///   - encode: The file's bytes for a value. Called in the background.
    public static func fileStorage<Value: Sendable>(
        _ file: URL, decode: @escaping @Sendable (Data) throws -> Value,
        encode: @escaping @Sendable (Value) throws -> Data
    ) -> Self where Self == FileStorageKey<Value> {
        FileStorageKey(file, FileCoding(decode: decode, encode: encode))
    }
}
