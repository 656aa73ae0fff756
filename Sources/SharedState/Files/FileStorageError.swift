/// Why a shared value could not be read from its file, or not be written to it.
public struct FileStorageError: Error, CustomStringConvertible {
    /// What kind of failure it is, and so what can be done.
    public enum Code: Sendable, Hashable {
        /// The file is there but does not hold a value of the type.
        case damaged
        /// The file is there but cannot be read.
        case unreadable
        /// The value could not be encoded or written.
        case unwritable
        /// The value was not written, because the file could not be read before and may hold something of worth.
        case notOverwritten
    }

    /// What kind of failure it is.
    public let code: Code
    /// The file.
    public let path: String
    /// What it failed with, one level below.
    public let cause: (any Error)?

    public var description: String {
        switch code {
        case .damaged:
            "\(path) does not hold a value of the expected type (\(reason)); repair it and call load(), or replace it with save()"
        case .unreadable:
            "\(path) cannot be read (\(reason)); make it readable and call load(), or replace it with save()"
        case .unwritable: "\(path) could not be written (\(reason)); make it writable and call save()"
        case .notOverwritten:
            "\(path) could not be read and is kept as it is; call load() once it is repaired, or save() to replace it"
        }
    }

    private var reason: String { cause.map { "\($0)" } ?? "no reason given" }
}
