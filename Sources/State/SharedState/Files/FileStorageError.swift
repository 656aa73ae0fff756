/// The reason why a shared value could not be read from its file or written to it.
public struct FileStorageError: Error, CustomStringConvertible {
    /// The kind of failure, which determines the remedy.
    public enum Code: Sendable, Hashable {
        /// The file exists but does not contain a value of the type.
        case damaged
        /// The file exists but cannot be read.
        case unreadable
        /// The value could not be encoded or written.
        case unwritable
        /// The value was not written, because the file could not be read before and may contain valuable data.
        case notOverwritten
    }

    /// The kind of failure.
    public let code: Code
    /// The path of the file.
    public let path: String
    /// The underlying error.
    public let cause: (any Error)?

    public var description: String {
        switch code {
        case .damaged:
            "\(path) does not hold a value of the expected type (\(reason)); repair it and call load(), or replace it with save()"
        case .unreadable:
            "\(path) cannot be read (\(reason)); make it readable and call load(), or replace it with save()"
        case .unwritable: "\(path) could not be written (\(reason)); make it writable and call save()"
        case .notOverwritten:
            "\(path) could not be read and was not changed; repair it and call load(), or call save() to replace it"
        }
    }

    private var reason: String { cause.map { "\($0)" } ?? "no reason given" }
}
