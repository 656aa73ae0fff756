#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// An error that can be compared, so that a state with an error in it can.
///
/// Two are equal when their errors are of one type and equal; errors that are not `Equatable` are equal when they
/// print the same.
public struct HashableError: Hashable, Sendable, CustomStringConvertible {
    /// The error as it was thrown.
    public let error: any Error

    /// - Parameter error: any; it need be neither `Equatable` nor `Hashable`.
    public init(_ error: any Error) { self.error = error }

    public static func == (left: Self, right: Self) -> Bool {
        guard type(of: left.error) == type(of: right.error) else { return false }
        if let known = left.error as? any Equatable { return isEqual(known, right.error) }
        return String(reflecting: left.error) == String(reflecting: right.error)
    }

    public func hash(into hasher: inout Hasher) {
        // The type alone: an error that is equal to another may print otherwise.
        hasher.combine(ObjectIdentifier(type(of: error)))
    }

    /// The error's own text for users, if it is a `LocalizedError` that has one, else what it prints.
    public var description: String { (error as? any LocalizedError)?.errorDescription ?? "\(error)" }

    private static func isEqual<Known: Equatable>(_ known: Known, _ other: any Error) -> Bool {
        (other as? Known) == known
    }
}
