/// Errors for messages that are too large for the peer.
enum MessageSizeErrors {
    /// Returns the error for a message that is not sent.
    ///
    /// - Parameters:
    ///   - own: the maximum size that this client sends, `TrebuchetClient.Options.serverMessageSize`.
    ///   - advertised: the maximum size that the server has advertised, `ServerLimits.messages.inboundBytes`; nil until it is known.
    static func tooLarge(_ what: String, _ count: Int, own: Int, advertised: Int?) -> TrebuchetError {
        let whose: String
        if let advertised, advertised <= own {
            whose = "the server's limit is \(advertised): raise its ServerLimits.messages.inboundBytes"
            return error(what, count, whose + (count > own ? ", and \(ownSetting) at this client (\(own))" : ""))
        }
        whose = "this client's limit is \(own): raise its \(ownSetting)"
        switch advertised {
        case let advertised? where count > advertised:
            return error(what, count, whose + ", and ServerLimits.messages.inboundBytes at the server (\(advertised))")
        case .some: return error(what, count, whose)
        case nil:
            return error(what, count, whose + ", which must equal the server's ServerLimits.messages.inboundBytes")
        }
    }

    private static let ownSetting = "TrebuchetClient.Options.serverMessageSize"

    private static func error(_ what: String, _ count: Int, _ reason: String) -> TrebuchetError {
        TrebuchetError(.invalidArguments, "the message with \(what) has \(count) bytes; \(reason)")
    }

    /// Returns the error for a message that the server rejected.
    static func refused(_ what: String, _ count: Int, limit: Int) -> TrebuchetError {
        TrebuchetError(
            .invalidArguments,
            "the message with \(what) has \(count) bytes, so the server closed the connection: its "
                + "ServerLimits.messages.inboundBytes is less than this client's TrebuchetClient.Options.serverMessageSize, \(limit)"
        )
    }
}
