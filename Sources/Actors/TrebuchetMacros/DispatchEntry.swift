import SwiftSyntax

/// Generates the entry of a distributed member in the dispatch table: decodes its arguments, calls it and encodes its
/// result.
struct DispatchEntry {
    let member: DistributedMember
    let actorName: String
    /// True if the call may run where the message arrives. Otherwise it runs in a task on the actor.
    let isInPlace: Bool

    init(_ member: DistributedMember, of actorName: String, inPlace: Bool) {
        self.member = member
        self.actorName = actorName
        isInPlace = inPlace && !member.isAsync
    }

    var source: String {
        var head = [quoted(member.wireName), "arguments: \(member.parameters.count)"]
        if !member.generics.isEmpty { head.append("generics: \(member.generics.parameters.count)") }
        if let type = member.errorType { head.append("throwing: \(type).self") }
        if member.isIdempotent { head.append("idempotent: true") }
        if member.isRedacted { head.append("redacted: true") }
        if let route = member.route { head.append("http: \(route.source)") }
        let closure = isInPlace ? synchronousClosure : asynchronousClosure
        return ".\(isInPlace ? "sync" : "async")(\(head.joined(separator: ", "))) \(closure)"
    }

    // MARK: In place

    private var synchronousClosure: String {
        if !member.generics.isEmpty {
            return """
                { actor, arguments, reply in
                    func call\(generics("_ actor: isolated \(actorName), _ arguments: inout TrebuchetActors._CallArguments, _ reply: inout TrebuchetActors._CallReply")) throws {
                        \(synchronousCall)
                    }
                \(opened)
                    try call(\(openedNames), actor, &arguments, &reply)
                }
                """
        }
        let arguments = member.parameters.isEmpty ? "_" : "arguments"
        let reply = member.returnsValue ? "reply" : "_"
        return """
            { actor, \(arguments), \(reply) in
                \(synchronousCall)
            }
            """
    }

    private var synchronousCall: String {
        let call = self.call { "arguments.next(\($0.type).self)" }
        if member.returnsValue { return "try reply.write(\(call))" }
        return member.canThrow || !member.parameters.isEmpty ? "try \(call)" : call
    }

    // MARK: In a task

    private var asynchronousClosure: String {
        if !member.generics.isEmpty {
            return """
                { arguments in
                    func prepare\(generics("_ arguments: inout TrebuchetActors._CallArguments")) throws -> @Sendable (isolated \(actorName)) async throws -> TrebuchetActors._CallResult {
                \(preparation.indented(by: 8))
                    }
                \(opened)
                    return try prepare(\(openedNames), &arguments)
                }
                """
        }
        return """
            { \(member.parameters.isEmpty ? "_" : "arguments") in
            \(preparation.indented(by: 4))
            }
            """
    }

    /// The lines that decode the arguments now, and return a closure with the call.
    private var preparation: String {
        var lines = member.parameters.enumerated().map { index, parameter in
            "let argument\(index) = try arguments.next(\(parameter.type).self)"
        }
        var index = 0
        let call = self.call { _ in
            defer { index += 1 }
            return "argument\(index)"
        }
        let effects = (member.canThrow ? "try " : "") + (member.isAsync ? "await " : "")
        lines.append("return { actor in")
        if member.returnsValue {
            lines.append("    try \(member.isAsync ? "await " : "").init(\(call))")
        } else {
            lines.append("    \(effects)\(call)")
            lines.append("    return .void")
        }
        lines.append("}")
        return lines.joined(separator: "\n")
    }

    // MARK: Parts

    private func call(_ argument: (DistributedMember.Parameter) -> String) -> String {
        let name = "actor.\(member.nameToken.trimmed)"
        if member.isProperty { return name }
        return "\(name)(\(member.parameters.map { $0.label + argument($0) }.joined(separator: ", ")))"
    }

    /// Returns the generic and parameter clauses of a local function with a metatype parameter for each generic
    /// parameter.
    private func generics(_ parameters: String) -> String {
        let types = member.generics.parameters.map { "_: \($0.name).Type" }
        return "\(member.generics.clause)(\(types.joined(separator: ", ")), \(parameters))"
    }

    /// The lines that check each type against the protocols of its generic parameter.
    private var opened: String {
        member.generics.parameters.enumerated().map { index, parameter in
            guard let metatype = parameter.metatype else { return "let type\(index) = try arguments.generic(\(index))" }
            return """
                guard let type\(index) = try arguments.generic(\(index)) as? \(metatype) else {
                    throw arguments.unsatisfied(\(index))
                }
                """
        }.joined(separator: "\n").indented(by: 4)
    }

    private var openedNames: String {
        member.generics.parameters.indices.map { "type\($0)" }.joined(separator: ", ")
    }

    private func quoted(_ text: String) -> String { "\"\(text)\"" }
}

extension String {
    /// Returns the text with `count` spaces before each line except the first.
    func indentedAfterFirstLine(by count: Int) -> String {
        String(indented(by: count).drop { $0 == " " })
    }

    /// Returns the text with `count` spaces before each line.
    func indented(by count: Int) -> String {
        let space = String(repeating: " ", count: count)
        return split(separator: "\n", omittingEmptySubsequences: false).map { $0.isEmpty ? "" : space + $0 }
            .joined(separator: "\n")
    }
}
