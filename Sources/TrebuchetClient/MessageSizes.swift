/// What is said of messages that are too large for the other end.
enum MessageSizes {
    /// A message that is not sent.
    ///
    /// - Parameters:
    ///   - own: what this client sends at most, `TrebuchetClient.Options.serverMessageSize`.
    ///   - told: what the server has said that it takes, `ServerLimits.messageSize`; nil while that is not known.
    static func tooLarge(_ what: String, _ count: Int, own: Int, told: Int?) -> TrebuchetError {
        let whose: String
        if let told, told <= own {
            whose = "the server takes \(told): raise its ServerLimits.messageSize"
            return error(what, count, whose + (count > own ? ", and \(ownSetting) here (\(own))" : ""))
        }
        whose = "this client sends at most \(own): raise its \(ownSetting)"
        switch told {
        case let told? where count > told:
            return error(what, count, whose + ", and ServerLimits.messageSize there (\(told))")
        case .some: return error(what, count, whose)
        case nil: return error(what, count, whose + ", which is to be the server's ServerLimits.messageSize")
        }
    }

    private static let ownSetting = "TrebuchetClient.Options.serverMessageSize"

    private static func error(_ what: String, _ count: Int, _ reason: String) -> TrebuchetError {
        TrebuchetError(.invalidArguments, "\(what) makes a message of \(count) bytes, and \(reason)")
    }

    /// A message that the server did not take.
    static func refused(_ what: String, _ count: Int, limit: Int) -> TrebuchetError {
        TrebuchetError(
            .invalidArguments,
            "\(what) makes a message of \(count) bytes, for which the server has closed the connection: its "
                + "ServerLimits.messageSize is less than TrebuchetClient.Options.serverMessageSize here, \(limit)")
    }
}
