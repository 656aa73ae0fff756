import Foundation

/// A mail command that keeps the codes it is handed in files.
struct Mailbox {
    /// For `--mail-command`. The shell reads the script: while another process that this one starts still has the file as it
    /// was written, the system would not run it.
    var command: String { "/bin/sh \(folder)/mailer" }
    private let folder: String

    /// - Parameter folder: there is one.
    init(in folder: String) throws {
        self.folder = folder
        try "echo $TREBUCHET_MAIL_CODE > '\(folder)'/\"$TREBUCHET_MAIL_TO\"\n".write(
            toFile: folder + "/mailer", atomically: true, encoding: .utf8)
    }

    func code(sentTo email: String) throws -> String {
        try String(contentsOfFile: "\(folder)/\(email)", encoding: .utf8).filter(\.isNumber)
    }
}
