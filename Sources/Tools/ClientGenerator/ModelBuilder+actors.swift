internal import SwiftParser
internal import SwiftReading
internal import SwiftSyntax

/// Reads actors and actor protocols.
extension ModelBuilder {
    func readActor(_ type: DeclaredType) {
        let isActor = type.kind == .actor && type.hasAttribute("Trebuchet")
        let isProtocol = type.kind == .protocol && type.hasAttribute("Resolvable")
        guard isActor || isProtocol, !type.isFilePrivate else { return }
        let directives = directives(type.comments, at: type.location)
        guard !directives.contains(.skip) else { return }
        guard type.genericParameters.isEmpty else {
            problems.warn(
                type.location,
                "'\(type.qualifiedName)' is omitted: a TypeScript client cannot choose the types of a generic actor; "
                    + "confirm with '// trebuchet: skip' above it")
            return
        }
        var actor = ClientModel.Actor(
            name: typeScriptName(of: type), swiftName: type.qualifiedName, isProtocol: isProtocol,
            documentation: type.comments.documentation, location: type.location)
        let outer = integers(directives, else: integers)
        for member in type.members { read(member, of: type, outer, into: &actor) }
        for part in type.extensions {
            for member in part.members { readExtension(member, part.file, of: type, outer, into: &actor) }
        }
        nameMembers(of: &actor)
        model.actors.append(actor)
    }

    private func read(
        _ member: DeclSyntax, of type: DeclaredType, _ outer: Integers, into actor: inout ClientModel.Actor
    ) {
        let comments = Comments(member)
        if let function = member.as(FunctionDeclSyntax.self), function.modifiers.isDistributed,
            !function.modifiers.isFilePrivate
        {
            let location = type.file.location(of: function.name)
            let directives = directives(comments, at: location)
            guard !directives.contains(.skip) else { return }
            if let method = method(function, comments, directives, of: type, outer) { actor.methods.append(method) }
        } else if let variable = member.as(VariableDeclSyntax.self), !variable.modifiers.isFilePrivate {
            read(variable, comments, of: type, outer, into: &actor)
        }
    }

    // MARK: Methods

    private func method(
        _ function: FunctionDeclSyntax, _ comments: Comments, _ directives: [Directive], of type: DeclaredType,
        _ outer: Integers
    ) -> ClientModel.Method? {
        let target = WireName.method(function)
        let location = type.file.location(of: function.name)
        let clause = function.signature.parameterClause.parameters
        guard function.genericParameterClause == nil, !clause.contains(where: { $0.type.hasOpaqueType }) else {
            problems.warn(
                location,
                "'\(target)' is omitted: a TypeScript client cannot choose the types of a generic method; "
                    + "confirm with '// trebuchet: skip' above it")
            return nil
        }
        let scope = Scope(type.file, in: type, integers: integers(directives, else: outer))
        let parameters = clause.enumerated().map { position, parameter in
            let name = (parameter.secondName ?? parameter.firstName).plainText
            return ClientModel.Parameter(
                name: name == "_" ? "argument\(position)" : name, type: self.parameter(parameter, scope))
        }
        var result: WireType?
        if let returned = function.signature.returnClause?.type, !returned.isVoid {
            result = customTypeName(directives).map { .custom($0) } ?? read(returned, scope)
        }
        let attributes = index.conditions.attributes(function.attributes)
        let route = attributes.first { $0.plainName == "HTTP" }.flatMap { HTTPAttribute($0) }
        return ClientModel.Method(
            name: function.name.plainText, target: target, baseName: function.name.plainText,
            labels: clause.map(\.firstName.plainText), parameters: parameters, result: result,
            error: error(function.signature.effectSpecifiers?.throwsClause, scope),
            isIdempotent: attributes.contains { $0.plainName == "Idempotent" },
            documentation: comments.documentation, location: location,
            route: route.map { ($0, clause.map { HTTPAttribute.name(of: $0) }) })
    }

    private func parameter(_ parameter: FunctionParameterSyntax, _ scope: Scope) -> WireType {
        let directives = directives(Comments(parameter), at: scope.location(of: parameter))
        if let custom = customTypeName(directives) { return .custom(custom) }
        var scope = scope
        scope.integers = integers(directives, else: scope.integers)
        return read(parameter.type, scope)
    }

    private func error(_ clause: ThrowsClauseSyntax?, _ scope: Scope) -> (swiftName: String, type: WireType)? {
        guard let type = clause?.type else { return nil }
        let name = DeclarationIndex.path(type).last ?? type.trimmedDescription
        // An error of the framework has a code and a message; there is nothing more to read.
        let untyped = [
            "Never", "Swift.Never", "any Error", "any Swift.Error", "Error", "Swift.Error", "TrebuchetError",
        ]
        let found = declared(type, scope)
        if found == nil, untyped.contains(type.trimmedDescription) { return nil }
        if let found, !isCodable(found), found.kind != .alias {
            problems.warn(
                scope.location(of: type),
                "'\(found.qualifiedName)' is not Codable, so a client gets only its message")
            return nil
        }
        let read = read(type, scope)
        guard case .named(let id, _) = read else { return (name, read) }
        return (index.types[id].qualifiedName, read)
    }

    // MARK: Properties

    private func read(
        _ variable: VariableDeclSyntax, _ comments: Comments, of type: DeclaredType, _ outer: Integers,
        into actor: inout ClientModel.Actor
    ) {
        let attributes = Set(index.conditions.attributes(variable.attributes).map(\.plainName))
        let isState = attributes.contains("StreamedState")
        let isEvents = attributes.contains("StreamedEvents")
        guard isState || isEvents || variable.modifiers.isDistributed, let binding = variable.bindings.first,
            let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier
        else { return }
        let location = type.file.location(of: name)
        let directives = directives(comments, at: location)
        guard !directives.contains(.skip) else { return }
        var scope = Scope(type.file, in: type, integers: integers(directives, else: outer))
        scope.fallback = location
        let read: WireType
        if let custom = customTypeName(directives) {
            read = .custom(custom)
        } else if let written = binding.typeAnnotation?.type
            ?? binding.initializer.flatMap({ self.type(of: $0.value, scope) })
        {
            read = self.read(written, scope)
        } else {
            problems.error(
                location, "the type of '\(name.plainText)' cannot be inferred; write it, as in '\(name.plainText): Int'"
            )
            return
        }
        if isState || isEvents {
            let stream = ClientModel.Stream(
                name: name.plainText, target: WireName.observation(of: name.plainText), type: read,
                documentation: comments.documentation, location: location)
            if isState { actor.states.append(stream) } else { actor.events.append(stream) }
        } else {
            actor.methods.append(
                ClientModel.Method(
                    name: name.plainText, target: WireName.property(name), baseName: name.plainText, labels: [],
                    parameters: [], result: read, error: nil, isIdempotent: false,
                    documentation: comments.documentation,
                    location: location))
        }
    }

    /// Reads an extension. An extension of a protocol may contain its streams; distributed methods of extensions have
    /// no entry at the server.
    private func readExtension(
        _ member: DeclSyntax, _ file: SourceFile, of type: DeclaredType, _ outer: Integers,
        into actor: inout ClientModel.Actor
    ) {
        if let function = member.as(FunctionDeclSyntax.self), function.modifiers.isDistributed {
            problems.warn(
                file.location(of: function.name),
                "'\(WireName.method(function))' is omitted: methods in extensions have no readable name at the server; move it "
                    + "into the body of '\(type.qualifiedName)'")
        }
        guard actor.isProtocol, let variable = member.as(VariableDeclSyntax.self),
            let binding = variable.bindings.first,
            let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier,
            let observation = binding.typeAnnotation?.type.as(IdentifierTypeSyntax.self),
            ["StateObservation", "EventObservation"].contains(observation.name.text),
            case .type(let value)? = observation.genericArgumentClause?.arguments.last?.argument
        else { return }
        let comments = Comments(member)
        let location = file.location(of: name)
        let directives = directives(comments, at: location)
        guard !directives.contains(.skip) else { return }
        let finder = FirstString(viewMode: .sourceAccurate)
        if let body = binding.accessorBlock { finder.walk(body) }
        let target = finder.found ?? name.plainText
        let plain = target.hasPrefix("observe") && target.count > 7 ? String(target.dropFirst(7)) : target
        let scope = Scope(file, in: type, integers: integers(directives, else: outer))
        let stream = ClientModel.Stream(
            name: plain.prefix(1).lowercased() + plain.dropFirst(), target: target,
            type: customTypeName(directives).map { .custom($0) } ?? read(value, scope),
            documentation: comments.documentation,
            location: location)
        if observation.name.text == "StateObservation" {
            actor.states.append(stream)
        } else {
            actor.events.append(stream)
        }
    }

    // MARK: Names

    /// Assigns distinct names to members that would share one: `add(title:)` and `add(text:)` become `addTitle` and
    /// `addText`. If labels are not enough, `add()` and `add(_ count:)` become `add` and `addCount`.
    private func nameMembers(of actor: inout ClientModel.Actor) {
        let streams = actor.states + actor.events
        func isTaken(_ name: String, _ names: [String]) -> Bool { names.count { $0 == name } > 1 }
        func joined(_ base: String, _ words: [String]) -> String {
            base + words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        }
        let methods = actor.methods
        let bare = streams.map(\.name) + methods.map(\.baseName)
        let labelled = methods.map { method in
            isTaken(method.baseName, bare)
                ? joined(method.baseName, method.labels.filter { $0 != "_" }) : method.baseName
        }
        for (index, method) in methods.enumerated() {
            var name = labelled[index]
            if isTaken(name, streams.map(\.name) + labelled) {
                name = joined(method.baseName, zip(method.labels, method.parameters).map { $0 == "_" ? $1.name : $0 })
            }
            // JavaScript treats an object with a method `then` as a promise.
            actor.methods[index].name = name == "then" ? "then_" : name
        }
        var locations: [String: SourcePosition] = [:]
        for (name, location) in streams.map({ ($0.name, $0.location) }) + actor.methods.map({ ($0.name, $0.location) })
        {
            if let other = locations[name] {
                problems.error(
                    location,
                    "'\(name)' is the TypeScript name of two members of '\(actor.swiftName)' (the other: \(other)); "
                        + "change the argument labels of one, or write '// trebuchet: skip' above it")
            } else {
                locations[name] = location
            }
        }
    }
}

/// Finds the first plain string literal in a piece of source.
private final class FirstString: SyntaxVisitor {
    var found: String?

    override func visit(_ node: StringLiteralExprSyntax) -> SyntaxVisitorContinueKind {
        if found == nil { found = node.representedLiteralValue }
        return .skipChildren
    }
}

/// Detects a `some` in a type.
private final class OpaqueTypes: SyntaxVisitor {
    var found = false

    override func visit(_ node: SomeOrAnyTypeSyntax) -> SyntaxVisitorContinueKind {
        if node.someOrAnySpecifier.tokenKind == .keyword(.some) { found = true }
        return .visitChildren
    }
}

extension TypeSyntax {
    fileprivate var hasOpaqueType: Bool {
        let visitor = OpaqueTypes(viewMode: .sourceAccurate)
        visitor.walk(self)
        return visitor.found
    }

    fileprivate var isVoid: Bool {
        if let tuple = self.as(TupleTypeSyntax.self) { return tuple.elements.isEmpty }
        return ["Void", "Swift.Void"].contains(trimmedDescription)
    }
}
