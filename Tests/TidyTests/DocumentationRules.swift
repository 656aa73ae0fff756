/// Public declarations say in a doc comment what a caller must know.
enum DocumentationRules {
    /// The modules whose public declarations are a package's interface.
    static let modules: Set<String> = [
        "Deltas", "IdentifiedArrays", "Loading", "QStream", "Relays", "SharedState", "StateMachines", "Transports",
        "Trebuchet", "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster", "TrebuchetRedis", "TrebuchetServices",
        "TrebuchetStore", "TrebuchetTesting",
        "TrebuchetURLSession", "WebSockets",
    ]

    /// What only satisfies a protocol of the standard library or of Distributed, whose own documentation tells of it.
    private static let witnesses: Set<String> = [
        "==", "<", "hash(into:", "description", "debugDescription", "errorDescription", "encode(to:", "init(from:",
        "makeAsyncIterator", "makeIterator", "next", "Element", "Failure", "Iterator", "AsyncIterator", "Index",
        "startIndex", "endIndex", "index(after:", "index(before:",
        // What only the compiler calls, for actors and for calls of them.
        "ActorID", "InvocationEncoder", "InvocationDecoder", "ResultHandler", "SerializationRequirement", "assignID",
        "actorReady", "resignID", "makeInvocationEncoder", "remoteCall", "remoteCallVoid",
        // And for the bodies of a result builder.
        "buildExpression", "buildBlock", "buildPartialBlock", "buildOptional", "buildEither",
        "buildLimitedAvailability", "buildFinalResult",
    ]

    /// The public declarations of a file that have no doc comment. Names that begin with an underscore need none, nor
    /// does what a symbol graph leaves out (`@_documentation(visibility: internal)`), nor an extension or an import.
    static func findings(in file: SourceText) -> [Finding] {
        guard file.path.hasPrefix("Sources/"), let module = file.module, modules.contains(module) else { return [] }
        return DeclarationReader.declarations(in: file).compactMap { found in
            let name = found.name
            guard !found.isHidden, !witnesses.contains(name), !name.hasPrefix("_"),
                !isDocumented(found.line, in: file)
            else { return nil }
            return Finding(path: file.path, line: found.line + 1, message: "\(name) is public and has no doc comment")
        }
    }

    private static func isDocumented(_ line: Int, in file: SourceText) -> Bool {
        let above = DeclarationReader.firstLine(of: line, in: file) - 1
        return above >= 0 && file.comments[above].contains(/^\s*(?:\/\/\/|.*\*\/)/)
    }
}
