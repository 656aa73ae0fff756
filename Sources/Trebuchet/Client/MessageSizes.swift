/// What is said of messages that are too large for the other end.
enum MessageSizes {
    /// The field of the client's request that says how large a message it takes, in bytes.
    static let header = "Trebuchet-Message-Size"

    /// The server has closed the connection with 1009, for one of the messages that it was sent: the cause of an error.
    struct Refusal: Error {}

    /// A message that is not sent.
    static func tooLarge(_ what: String, _ count: Int, limit: Int) -> TrebuchetError {
        TrebuchetError(
            .invalidArguments,
            "\(what) makes a message of \(count) bytes, and the server takes \(limit) "
                + "(ServerLimits.messageSize there, TrebuchetClient.Options.serverMessageSize here)")
    }

    /// A message that the server did not take.
    static func refused(_ what: String, _ count: Int, limit: Int) -> TrebuchetError {
        TrebuchetError(
            .invalidArguments,
            "\(what) makes a message of \(count) bytes, for which the server has closed the connection: its "
                + "ServerLimits.messageSize is less than TrebuchetClient.Options.serverMessageSize here, \(limit)")
    }
}
