/// The status that a server answered an upgrade with instead of 101: the cause of a `TransportError`.
public struct UnexpectedStatus: Error, Hashable, Sendable {
    public let status: Int

    public init(_ status: Int) { self.status = status }
}
