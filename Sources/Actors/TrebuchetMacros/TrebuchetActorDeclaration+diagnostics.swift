import SwiftDiagnostics
import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder

/// The possible errors of an actor marked `@Trebuchet`.
extension TrebuchetActorDeclaration {
    static func notDistributed(_ declaration: some DeclGroupSyntax) -> Diagnostic {
        let message = "'@Trebuchet' can only be attached to a distributed actor"
        guard let actor = declaration.as(ActorDeclSyntax.self) else {
            return MacroDiagnostic.error("actor", at: declaration.introducer, message)
        }
        var distributed = actor
        var modifier = DeclModifierSyntax(name: .keyword(.distributed), trailingTrivia: .space)
        if actor.modifiers.isEmpty {
            modifier.leadingTrivia = actor.actorKeyword.leadingTrivia
            distributed.actorKeyword.leadingTrivia = []
        }
        distributed.modifiers.append(modifier)
        return MacroDiagnostic.error(
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
                MacroDiagnostic.error(
                    "executor", at: argument.expression,
                    "'@Trebuchet' requires its executor as the literal '.reactor' or '.concurrent', because it is read "
                        + "when the code is compiled")
            ])
        }
    }

    /// Errors for persisted states of an actor that does not run on a reactor.
    var unpersistable: [Diagnostic] {
        guard executor == .concurrent else { return [] }
        return streams.compactMap { stream in
            stream.value.arguments.persisted.map { expression in
                MacroDiagnostic.error(
                    "persisted.executor", at: expression,
                    "'\(stream.value.plainName)' cannot be persisted: its actor runs with 'executor: .concurrent', and "
                        + "responses can wait for writes only on a reactor")
            }
        }
    }

    /// Errors for properties without a value in an actor without an initializer: the compiler would report the
    /// generated one.
    var uninitialized: [Diagnostic] {
        guard !hasInitializer, let first = valueless.first else { return [] }
        let parameters = valueless.map { "\($0.name.plainText): \($0.type), " }.joined()
        let count = valueless.count == 1 ? "it" : "each of them"
        let names = valueless.map { "'\($0.name.plainText)'" }.joined(separator: ", ")
        return [
            MacroDiagnostic.error(
                "initializer", at: first.name,
                "\(names) \(valueless.count == 1 ? "has" : "have") no value, and '\(name.text)' has no initializer: give \(count) a "
                    + "value, or add 'init(\(parameters)actorSystem: TrebuchetActorSystem)'")
        ]
    }

    /// Errors for names that would be declared twice, on the wire or in the actor.
    var collisions: [Diagnostic] { overloads + streamCollisions + ownMemberCollisions }

    private var overloads: [Diagnostic] {
        distributed.enumerated().compactMap { index, member in
            let name = member.value.wireName
            let other = distributed[..<index].first { $0.value.wireName == name && $0.canCoexist(with: member) }
            guard let other else { return nil }
            return MacroDiagnostic.error(
                "overload", at: member.value.nameToken,
                "two distributed methods are named '\(name)': "
                    + "change the name or the argument labels of one of them",
                notes: [Note("overload.note", at: other.value.nameToken, "the other '\(name)' is here")])
        }
    }

    private var streamCollisions: [Diagnostic] {
        streams.enumerated().compactMap { index, stream in
            let name = stream.value.observationName
            let other = streams[..<index].first { $0.value.observationName == name && $0.canCoexist(with: stream) }
            guard let other else { return nil }
            return MacroDiagnostic.error(
                "streams", at: stream.value.name,
                "'\(stream.value.plainName)' and '\(other.value.plainName)' have the same stream name "
                    + "'\(name)': rename one of them",
                notes: [Note("streams.note", at: other.value.name, "'\(other.value.plainName)' is here")])
        }
    }

    private var ownMemberCollisions: [Diagnostic] {
        var generated: [String: String] = ["_dispatch": "the dispatch table"]
        if !streams.isEmpty { generated["StreamingMethod"] = "the names of the streams" }
        for stream in streams.map(\.value).reversed() {
            generated[stream.observationName] = "the changes of '\(stream.plainName)'"
        }
        return ownMembers.map(\.value).compactMap { member in
            guard let meaning = generated[member.name] else { return nil }
            var fixIts: [FixIt] = []
            if member.declaration.is(FunctionDeclSyntax.self) {
                let change = FixIt.Change.replace(
                    oldNode: Syntax(member.declaration), newNode: Syntax(MissingDeclSyntax(placeholder: "")))
                fixIts = [FixIt("collision.fix", "remove '\(member.name)'", [change])]
            }
            return MacroDiagnostic.error(
                "collision", at: member.token,
                "'\(member.name)' collides with the member that '@Trebuchet' generates for \(meaning)", fixIts: fixIts)
        }
    }
}
