import Trebuchet
import TrebuchetServices

/// The texts of errors, with a remedy where it is an option of this program.
enum ErrorHint {
    /// Returns the text of an error in one line.
    ///
    /// - Parameter command: the name of the command, such as `topic publish`.
    static func text(_ error: any Error, of command: String) -> String {
        let text = LogLine.of("\(error)")
        guard (error as? TrebuchetError)?.code == .actorNotFound, let service = service(of: command) else {
            return text
        }
        return
            "\(text); the server does not host \(service): start it without --services, or with --services \(service)"
    }

    /// Returns the problems of an invalid file, one line each; nil for other errors.
    static func problems(of error: any Error) -> [String]? {
        switch error {
        case let error as RulesFileError: error.problems.map { LogLine.of("\($0)") }
        case let error as SettingsFileError: error.problems.map { LogLine.of("\($0)") }
        default: nil
        }
    }

    /// The service that a command uses; nil for commands that work with any server.
    private static func service(of command: String) -> String? {
        switch command.prefix(while: { $0 != " " }) {
        case "sign-in", "sessions", "account": "auth"
        case "collection": "collections"
        case "presence", "topic": "rooms"
        default: nil
        }
    }
}
