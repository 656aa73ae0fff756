import SwiftReading
import SwiftSyntax
import SwiftSyntaxBuilder

/// The members that `@Trebuchet` adds.
///
/// Types are qualified with the module that declares them, so that a type of the same name in the user's module does
/// not interfere. Code that imports the server or client module can see that module too. In an expression the compiler
/// resolves `Trebuchet` to the macro, so there only implicit members (`.init`) are used.
extension TrebuchetActorDeclaration {
    var members: [DeclSyntax] {
        var members: [DeclSyntax] = []
        if !declares("ActorSystem") {
            members.append("\(raw: access.memberPrefix)typealias ActorSystem = TrebuchetActors.TrebuchetActorSystem")
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
        if let streamingMethod { members.append(streamingMethod) }
        return members
    }

    private func declares(_ name: String) -> Bool { ownMembers.contains { $0.value.name == name } }

    /// The streams whose generated members do not collide with handwritten members or with each other.
    private var servedStreams: [ConditionallyCompiled<StreamedProperty>] {
        streams.enumerated().filter { index, stream in
            let name = stream.value.observationName
            return !declares(name)
                && !streams[..<index].contains { $0.value.observationName == name && $0.canCoexist(with: stream) }
        }.map(\.element)
    }

    private var servedMembers: [ConditionallyCompiled<DistributedMember>] {
        distributed.enumerated().filter { index, member in
            !distributed[..<index].contains {
                $0.value.wireName == member.value.wireName && $0.canCoexist(with: member)
            }
        }.map(\.element)
    }

    // MARK: The dispatch table

    private var dispatch: DeclSyntax {
        let methods = servedMembers.map { member in
            let entry = DispatchEntry(member.value, of: name.text, inPlace: executor == .reactor)
            return ConditionallyCompiled(entry.source, if: member.condition)
        }
        let streams = servedStreams.map { ConditionallyCompiled(streamEntry($0.value), if: $0.condition) }
        let conditional =
            additions(to: "methods", methods) + additions(to: "streams", streams)
        let body =
            conditional.isEmpty
            ? """
            .init(
                \(executorArgument)methods: \(list(methods).indentedAfterFirstLine(by: 4)),
                streams: \(list(streams).indentedAfterFirstLine(by: 4))\(lifecycleArguments)
            )
            """
            : """
            var methods: [TrebuchetActors._DispatchMethod<\(name)>] = \(list(methods))
            var streams: [TrebuchetActors._DispatchStream<\(name)>] = \(list(streams))
            \(conditional.joined(separator: "\n"))
            return .init(\(executorArgument)methods: methods, streams: streams\(lifecycleArguments))
            """
        // Code that is deprecated itself may call deprecated members without a warning. The table is used through its protocol.
        let isDeprecated =
            servedMembers.contains { $0.value.isDeprecated } || servedStreams.contains { $0.value.deprecation != nil }
        return """
            \(raw: isDeprecated ? "@available(*, deprecated)\n" : "")\(raw: access.memberPrefix)static var _dispatch: TrebuchetActors._DispatchTable<\(name)> {
            \(raw: body.indented(by: 4))
            }
            """
    }

    private func streamEntry(_ stream: StreamedProperty) -> String {
        let cell = "{ actor in actor.\(stream.cellName) }"
        guard stream.kind == .state else {
            return stream.arguments.isPersisted
                ? ".persistedEvents(\"\(stream.observationName)\", property: \"\(stream.plainName)\") \(cell)"
                : ".events(\"\(stream.observationName)\") \(cell)"
        }
        let value = "value: { actor in actor.\(stream.name.text) }"
        let change = "change: { actor, body in body(&actor.\(stream.name.text)) }"
        guard stream.arguments.isPersisted else {
            return ".state(\"\(stream.observationName)\") \(cell) \(value) \(change)"
        }
        let version = stream.arguments.version.map { ", " + $0.entryArgument } ?? ""
        return """
            .persisted("\(stream.observationName)", property: "\(stream.plainName)"\(version)) \(cell) \(value) \(change)
            """
    }

    private var executorArgument: String { executor == .concurrent ? "executor: .concurrent, " : "" }

    private var lifecycleArguments: String {
        LifecycleMethod.Kind.allCases.compactMap { kind in lifecycle[kind].map { ", " + $0.argument } }.joined()
    }

    /// Returns an array literal of the unconditional entries.
    private func list(_ entries: [ConditionallyCompiled<String>]) -> String {
        let always = entries.filter { $0.condition == nil }.map(\.value)
        return always.isEmpty ? "[]" : "[\n" + always.joined(separator: ",\n").indented(by: 4) + "\n]"
    }

    /// Returns the statements that add the entries inside `#if`.
    private func additions(to array: String, _ entries: [ConditionallyCompiled<String>]) -> [String] {
        entries.filter { $0.condition != nil }.map { $0.guarded("\(array).append(\n\($0.value.indented(by: 4))\n)") }
    }

    // MARK: Streams

    private func observation(of stream: ConditionallyCompiled<StreamedProperty>) -> DeclSyntax {
        let property = stream.value
        let arguments = property.initializerArguments
        let deprecation = property.deprecation.map { "\($0.trimmed)\n" } ?? ""
        let source = """
            \(deprecation)\(access.prefix(forMember: property.access))nonisolated var \(property.observationName): \
            TrebuchetActors.\(property.kind == .state ? "State" : "Event")Observation<\(name), \(property.type)> {
                .init(self, "\(property.observationName)"\(arguments.isEmpty ? "" : ", " + arguments))
            }
            """
        return "\(raw: stream.guarded(source))"
    }

    /// The enum of the stream names, or nil without an unconditional stream: an enum with raw values needs a case.
    private var streamingMethod: DeclSyntax? {
        guard servedStreams.contains(where: { $0.condition == nil }) else { return nil }
        let cases = servedStreams.map { $0.guarded("case \($0.value.observationName)") }
        return """
            \(raw: access.memberPrefix)enum StreamingMethod: String, CaseIterable, Sendable {
            \(raw: cases.joined(separator: "\n").indented(by: 4))
            }
            """
    }
}
