internal import Platform
internal import WebSockets

/// The refusal of an activation that concerns one caller only, such as a used up quota or rate. Other callers that wait for the actor
/// activate it for themselves.
package struct CallerRefusal: Error {
    /// The error that the refused callers receive.
    package let cause: any Error
    /// The scope that is refused; `server` for an activation by the server itself.
    let scope: QuotaScope

    init(_ cause: any Error, of scope: QuotaScope) { (self.cause, self.scope) = (cause, scope) }

    /// Creates the refusal of the caller whose activation runs now.
    package init(_ cause: any Error) { self.init(cause, of: ActivationOrigin.current?.scope ?? .server) }

    /// Returns the error for callers: the cause of a refusal, or the error itself.
    static func cause(of error: any Error) -> any Error { (error as? CallerRefusal)?.cause ?? error }

    /// Returns whether calls with these quota scopes are refused.
    ///
    /// - Parameter scopes: nil for the server itself.
    func concerns(_ scopes: QuotaScopes?) -> Bool {
        switch scope {
        case .server: scopes?.connection == nil
        case .client: false
        case .connection(let number): scopes?.connection == number
        case .principal(let id): scopes?.principal.map { PrincipalName($0) } == id
        case .host(let number): scopes?.host?.number == number
        case .network(let number): scopes?.host?.network.number == number
        }
    }
}
