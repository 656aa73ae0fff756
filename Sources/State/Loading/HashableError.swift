#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A comparable error, which makes a state that contains an error comparable.
///
/// Two are equal when their errors have the same type and are equal. Errors that are not `Equatable` are equal when
/// their printed forms are equal.
public struct HashableError: Hashable, Sendable, CustomStringConvertible {
    /// The error as it was thrown.
    public let error: any Error

    /// Wraps an error.
    ///
    /// - Parameter error: any error; it need be neither `Equatable` nor `Hashable`.
    public init(_ error: any Error) { self.error = error }

    public static func == (left: Self, right: Self) -> Bool {
        guard type(of: left.error) == type(of: right.error) else { return false }
        if let known = left.error as? any Equatable { return isEqual(known, right.error) }
        return String(reflecting: left.error) == String(reflecting: right.error)
    }

    public func hash(into hasher: inout Hasher) {
        // Only the type: an error that is equal to another may print differently.
        hasher.combine(ObjectIdentifier(type(of: error)))
    }

    /// The `errorDescription` if the error is a `LocalizedError` that has one, else its printed form.
    public var description: String { (error as? any LocalizedError)?.errorDescription ?? "\(error)" }

    private static func isEqual<KnownState: Equatable>(_ known: KnownState, _ other: any Error) -> Bool {
        (other as? KnownState) == known
    }
}
