/// The result of an intercepted call. Only `next` returns one, so an interceptor that returns has continued the call.
public struct InterceptedResult: Sendable {
    /// The result as JSON; nil for a method without a result, and at a server.
    package let json: [UInt8]?

    package init(json: [UInt8]?) { self.json = json }
}
