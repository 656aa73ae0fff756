/// Public declarations have a doc comment for their callers.
enum DocumentationRules {
    /// The modules whose public declarations are the package's interface.
    static let modules: Set<String> = [
        "Deltas", "IdentifiedArrays", "Loading", "QStream", "Relays", "SharedState", "StateMachines", "Transports",
        "Trebuchet", "TrebuchetActors", "TrebuchetClient", "TrebuchetCluster", "TrebuchetNodes", "TrebuchetRedis",
        "TrebuchetServices",
        "TrebuchetServicesModel", "TrebuchetServicesClient", "TrebuchetStore", "TrebuchetTesting",
        "TrebuchetTokens", "TrebuchetURLSession", "WebSockets",
    ]

    /// Witnesses for protocols of the standard library or of Distributed, which are documented there.
    private static let witnesses: Set<String> = [
        "==", "<", "hash(into:", "description", "debugDescription", "errorDescription", "encode(to:", "init(from:",
        "makeAsyncIterator", "makeIterator", "next", "Element", "Failure", "Iterator", "AsyncIterator", "Index",
        "startIndex", "endIndex", "index(after:", "index(before:",
        // Declarations that only the compiler calls, for actors and their calls.
        "ActorID", "InvocationEncoder", "InvocationDecoder", "ResultHandler", "SerializationRequirement", "assignID",
        "actorReady", "resignID", "makeInvocationEncoder", "remoteCall", "remoteCallVoid",
        // Builder methods, which the compiler calls as well.
        "buildExpression", "buildBlock", "buildPartialBlock", "buildOptional", "buildEither",
        "buildLimitedAvailability", "buildFinalResult",
    ]

    /// The public declarations of a file without a doc comment. Exempt are names with a leading underscore, declarations left out of the
    /// symbol graph (`@_documentation(visibility: internal)`), extensions and imports.
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
