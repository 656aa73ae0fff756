/// The server's answer when it was asked for a magic code: the same for every address.
public struct SendMagicCodeResponse: Codable, Sendable, Hashable {
    /// How long the code is good for, in seconds.
    public var validSeconds: Int

    public init(validSeconds: Int) { self.validSeconds = validSeconds }
}
