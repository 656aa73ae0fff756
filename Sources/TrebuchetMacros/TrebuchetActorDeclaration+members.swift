import SwiftSyntax
import SwiftSyntaxBuilder

/// The members that `@Trebuchet` adds.
///
/// Types are written `Trebuchet.X`, so that a type of the same name in the user's module does no harm. In an expression
/// the compiler takes `Trebuchet` for the macro, so there only implicit members (`.init`) are used.
extension TrebuchetActorDeclaration {
    var members: [DeclSyntax] {
        var members: [DeclSyntax] = []
        if !declares("ActorSystem") {
            members.append("\(raw: access.memberPrefix)typealias ActorSystem = Trebuchet.TrebuchetActorSystem")
        }
        if executor == .reactor, !declares("unownedExecutor") {
            members.append(
                """
                \(raw: access.memberPrefix)nonisolated var unownedExecutor: UnownedSerialExecutor {
                    id._executor
                }
                """)
        }
        members.append(dispatch)
        members += servedStreams.map(observation)
        if !servedStreams.isEmpty { members.append(streamingMethod) }
        return members
    }

    /// The streams whose generated members do not collide with members written by hand or with each other.
    private var servedStreams: [StreamedProperty] {
        var names: Set<String> = []
        return streams.filter { !declares($0.observationName) && names.insert($0.observationName).inserted }
    }

    private func declares(_ name: String) -> Bool { ownMembers.contains { $0.name == name } }

    private var dispatch: DeclSyntax {
        var names: Set<String> = []
        let methods = distributed.filter { names.insert($0.wireName).inserted }.map {
            DispatchEntry($0, of: name.text, inPlace: executor == .reactor).source
        }
        let streams = servedStreams.map { stream in
            ".state(\"\(stream.observationName)\") { actor in actor.\(stream.cellName) }"
        }
        return """
            \(raw: access.memberPrefix)static var _dispatch: Trebuchet.DispatchTable<\(name)> {
                .init(
                    methods: \(raw: list(methods)),
                    streams: \(raw: list(streams))
                )
            }
            """
    }

    private func list(_ elements: [String]) -> String {
        if elements.isEmpty { return "[]" }
        return "[\n" + elements.joined(separator: ",\n").indented(by: 12) + "\n        ]"
    }

    private func observation(of stream: StreamedProperty) -> DeclSyntax {
        return """
            \(raw: access.prefix(forMember: stream.access))nonisolated var \(raw: stream.observationName): \
            Trebuchet.StateObservation<\(name), \(stream.type)> {
                .init(self, \(literal: stream.observationName))
            }
            """
    }

    private var streamingMethod: DeclSyntax {
        let cases = servedStreams.map { "case \($0.observationName)" }
        return """
            \(raw: access.memberPrefix)enum StreamingMethod: String, CaseIterable, Sendable {
            \(raw: cases.joined(separator: "\n").indented(by: 4))
            }
            """
    }
}
