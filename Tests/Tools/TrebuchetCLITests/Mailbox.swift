import Foundation

/// A mail command that stores the codes in files.
struct Mailbox {
    /// For `--mail-command`. The shell reads the script: while another child process still has the written file open, the system would not
    /// execute it.
    var command: String { "/bin/sh \(folder)/mailer" }
    private let folder: String

    /// - Parameter folder: an existing folder.
    init(in folder: String) throws {
        self.folder = folder
        try "echo $TREBUCHET_MAIL_CODE > '\(folder)'/\"$TREBUCHET_MAIL_TO\"\n".write(
            toFile: folder + "/mailer", atomically: true, encoding: .utf8)
    }

    func code(sentTo email: String) throws -> String {
        try String(contentsOfFile: "\(folder)/\(email)", encoding: .utf8).filter(\.isNumber)
    }
}
