import SwiftDiagnostics
import SwiftSyntax

/// The text of an error, a warning, a note or a fix-it of a macro.
struct MacroDiagnostic: DiagnosticMessage, NoteMessage, FixItMessage {
    let id: String
    let message: String
    var severity: DiagnosticSeverity = .error

    var diagnosticID: MessageID { MessageID(domain: "TrebuchetMacros", id: id) }
    var noteID: MessageID { diagnosticID }
    var fixItID: MessageID { diagnosticID }

    /// Returns an error at `node`.
    static func error(
        _ id: String, at node: some SyntaxProtocol, _ message: String, notes: [Note] = [], fixIts: [FixIt] = []
    ) -> Diagnostic {
        Diagnostic(node: node, message: MacroDiagnostic(id: id, message: message), notes: notes, fixIts: fixIts)
    }
}

extension Note {
    init(_ id: String, at node: some SyntaxProtocol, _ message: String) {
        self.init(node: Syntax(node), message: MacroDiagnostic(id: id, message: message))
    }
}

extension FixIt {
    init(_ id: String, _ message: String, _ changes: [Change]) {
        self.init(message: MacroDiagnostic(id: id, message: message), changes: changes)
    }

    static func replacing(
        _ id: String, _ message: String, _ old: some SyntaxProtocol, with new: some SyntaxProtocol
    ) -> FixIt {
        FixIt(id, message, [.replace(oldNode: Syntax(old), newNode: Syntax(new))])
    }
}
