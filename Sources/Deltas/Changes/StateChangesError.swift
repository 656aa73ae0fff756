/// Changes that do not fit the value, or are not what changes may be.
public struct StateChangesError: Error, Sendable, CustomStringConvertible {
    /// What is wrong, and with which operation.
    public let message: String

    public init(_ message: String) { self.message = message }

    public var description: String { message }
}
