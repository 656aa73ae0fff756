import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// What can be wrong with an actor marked `@Trebuchet`.
extension TrebuchetActorDeclaration {
    static func notDistributed(_ declaration: some DeclGroupSyntax) -> Diagnostic {
        let message = "'@Trebuchet' can only be attached to a distributed actor"
        guard let actor = declaration.as(ActorDeclSyntax.self) else {
            return Problem.error("actor", at: declaration.introducer, message)
        }
        var distributed = actor
        var modifier = DeclModifierSyntax(name: .keyword(.distributed), trailingTrivia: .space)
        if actor.modifiers.isEmpty {
            modifier.leadingTrivia = actor.actorKeyword.leadingTrivia
            distributed.actorKeyword.leadingTrivia = []
        }
        distributed.modifiers.append(modifier)
        return Problem.error(
            "actor", at: actor.actorKeyword, message,
            fixIts: [.replacing("actor.fix", "insert 'distributed'", actor, with: distributed)])
    }

    static func executor(_ attribute: AttributeSyntax) throws(DiagnosticsError) -> Executor {
        guard case .argumentList(let arguments) = attribute.arguments,
            let argument = arguments.first(where: { $0.label?.text == "executor" })
        else { return .reactor }
        switch argument.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text {
        case "reactor": return .reactor
        case "concurrent": return .concurrent
        default:
            throw DiagnosticsError(diagnostics: [
                Problem.error(
                    "executor", at: argument.expression,
                    "'@Trebuchet' must be told its executor as '.reactor' or '.concurrent', since it is read "
                        + "when the code is compiled")
            ])
        }
    }

    /// Names that would be declared twice, on the wire or in the actor.
    var collisions: [Diagnostic] { overloads + streamCollisions + ownMemberCollisions }

    private var overloads: [Diagnostic] {
        var first: [String: TokenSyntax] = [:]
        var found: [Diagnostic] = []
        for member in distributed {
            if let other = first[member.wireName] {
                found.append(
                    Problem.error(
                        "overload", at: member.nameToken,
                        "clients cannot tell two distributed methods named '\(member.wireName)' apart: "
                            + "give one of them another name or other argument labels",
                        notes: [Note("overload.note", at: other, "the other '\(member.wireName)' is here")]))
            } else {
                first[member.wireName] = member.nameToken
            }
        }
        return found
    }

    private var streamCollisions: [Diagnostic] {
        var first: [String: StreamedProperty] = [:]
        var found: [Diagnostic] = []
        for stream in streams {
            if let other = first[stream.observationName] {
                found.append(
                    Problem.error(
                        "streams", at: stream.name,
                        "'\(stream.plainName)' and '\(other.plainName)' would both be observed as "
                            + "'\(stream.observationName)': rename one of them",
                        notes: [Note("streams.note", at: other.name, "'\(other.plainName)' is here")]))
            } else {
                first[stream.observationName] = stream
            }
        }
        return found
    }

    private var ownMemberCollisions: [Diagnostic] {
        var generated: [String: String] = ["_dispatch": "the dispatch table"]
        if !streams.isEmpty { generated["StreamingMethod"] = "the names of the streams" }
        for stream in streams { generated[stream.observationName] = "the changes of '\(stream.plainName)'" }
        return ownMembers.compactMap { member in
            guard let meaning = generated[member.name] else { return nil }
            var fixIts: [FixIt] = []
            if member.declaration.is(FunctionDeclSyntax.self) {
                let change = FixIt.Change.replace(
                    oldNode: Syntax(member.declaration), newNode: Syntax(MissingDeclSyntax(placeholder: "")))
                fixIts = [FixIt("collision.fix", "remove '\(member.name)'", [change])]
            }
            return Problem.error(
                "collision", at: member.token,
                "'\(member.name)' collides with the member that '@Trebuchet' generates for \(meaning)", fixIts: fixIts)
        }
    }
}
