/// The status that a server answered an upgrade with instead of 101: the cause of a `TransportError`.
public struct UnexpectedStatus: Error, Hashable, Sendable {
    public let status: Int

    /// For a transport of your own, whose server has answered the upgrade with this status.
    public init(_ status: Int) { self.status = status }
}
