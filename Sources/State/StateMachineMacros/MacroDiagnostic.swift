import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// The text of an error, a warning, a note or a fix-it of a macro.
struct MacroDiagnostic: DiagnosticMessage, NoteMessage, FixItMessage {
    let id: String
    let message: String
    var severity: DiagnosticSeverity = .error

    var diagnosticID: MessageID { MessageID(domain: "StateMachineMacros", id: id) }
    var noteID: MessageID { diagnosticID }
    var fixItID: MessageID { diagnosticID }

    static func error(
        _ id: String, at node: some SyntaxProtocol, _ message: String, notes: [Note] = [], fixIts: [FixIt] = []
    ) -> Diagnostic {
        Diagnostic(node: node, message: MacroDiagnostic(id: id, message: message), notes: notes, fixIts: fixIts)
    }

    static func warning(
        _ id: String, at node: some SyntaxProtocol, _ message: String, fixIts: [FixIt] = []
    ) -> Diagnostic {
        Diagnostic(node: node, message: MacroDiagnostic(id: id, message: message, severity: .warning), fixIts: fixIts)
    }
}

extension Note {
    init(_ id: String, at node: some SyntaxProtocol, _ message: String) {
        self.init(node: Syntax(node), message: MacroDiagnostic(id: id, message: message))
    }
}

extension FixIt {
    /// Returns a fix-it that replaces `old` by `new` and keeps the surrounding trivia.
    static func replacing(_ message: String, _ old: some SyntaxProtocol, with new: some SyntaxProtocol) -> FixIt {
        var placed = new
        placed.leadingTrivia = old.leadingTrivia
        placed.trailingTrivia = old.trailingTrivia
        return FixIt(
            message: MacroDiagnostic(id: "fix", message: message),
            changes: [.replace(oldNode: Syntax(old), newNode: Syntax(placed))])
    }

    /// Returns a fix-it that inserts a member at the beginning of a type.
    static func inserting(_ message: String, _ member: String, into declaration: some DeclGroupSyntax) -> FixIt {
        let brace = declaration.memberBlock.leftBrace
        let text = TokenSyntax(
            .leftBrace, leadingTrivia: brace.leadingTrivia,
            trailingTrivia: .newline + .unexpectedText("    \(member)") + brace.trailingTrivia, presence: .present)
        return FixIt(
            message: MacroDiagnostic(id: "fix", message: message),
            changes: [.replace(oldNode: Syntax(brace), newNode: Syntax(text))])
    }

    /// Returns a fix-it that removes an attribute with the space after it.
    static func removing(_ attribute: AttributeSyntax) -> FixIt {
        let name = attribute.attributeName.trimmedDescription
        return FixIt(
            message: MacroDiagnostic(id: "fix", message: "remove '@\(name)'"),
            changes: [.replace(oldNode: Syntax(attribute), newNode: Syntax(MissingExprSyntax(placeholder: "")))])
    }
}
