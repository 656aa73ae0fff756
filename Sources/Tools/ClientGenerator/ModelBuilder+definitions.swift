internal import SwiftParser
internal import SwiftReading
internal import SwiftSyntax

/// Reads the coded form of declared types.
extension ModelBuilder {
    func define(_ type: DeclaredType, _ directives: [Directive]) {
        guard model.definitions[type.id] == nil else { return }
        // Registered before its form is read, because types may contain each other.
        model.definitions[type.id] = ClientModel.Definition(
            name: typeScriptName(of: type), swiftName: type.qualifiedName, parameters: type.genericParameters,
            documentation: type.comments.documentation, form: .structure([]))
        let form = form(of: type, directives)
        model.definitions[type.id]?.form = form
    }

    private func form(of type: DeclaredType, _ directives: [Directive]) -> ClientModel.Form {
        if let custom = customTypeName(directives) { return .custom(custom) }
        let integers = integers(directives, else: self.integers)
        guard isReadable(type, isAsDeclared: directives.contains(.asDeclared)) else { return .custom("never") }
        if type.kind == .enumeration, let raw = rawCases(of: type) { return .rawValues(raw) }
        if conforms(type, to: ["RawRepresentable", "OptionSet"]) {
            switch rawValueType(of: type, nil) {
            // The standard library codes only these as raw values; with raw values of other types the properties are
            // coded.
            case let raw? where [.string, .boolean].contains(raw): return .id(raw)
            case .number(let name)?: return .id(.number(name))
            case .bigint(let name)?: return .id(.bigint(name))
            case .some: break
            case nil:
                problems.error(
                    type.location, "the raw value type of '\(type.qualifiedName)' cannot be determined; write its type")
            }
        }
        switch type.kind {
        case .enumeration: return .union(cases(of: type, integers))
        case .class:
            checkClass(type)
            return .structure(members(of: type, integers))
        default: return .structure(members(of: type, integers))
        }
    }

    // MARK: Codable

    /// Returns true if a type conforms to one of the protocols, directly or through protocols and aliases that the
    /// sources declare.
    func conforms(_ type: DeclaredType, to names: Set<String>) -> Bool {
        var seen: Set<Int> = []
        return conforms(type, to: names, &seen)
    }

    private func conforms(_ type: DeclaredType, to names: Set<String>, _ seen: inout Set<Int>) -> Bool {
        guard seen.insert(type.id).inserted else { return false }
        if type.inheritedNames.contains(where: names.contains) { return true }
        if let target = type.node.as(TypeAliasDeclSyntax.self)?.initializer.value {
            let parts = target.as(CompositionTypeSyntax.self)?.elements.map(\.type) ?? [target]
            if parts.contains(where: { names.contains(DeclarationIndex.path($0).last ?? "") }) { return true }
        }
        for parent in protocols(of: type) where conforms(parent, to: names, &seen) { return true }
        return false
    }

    /// Returns the inherited protocols, and aliases of protocols, that the sources declare.
    private func protocols(of type: DeclaredType) -> [DeclaredType] {
        type.inheritedNames.compactMap { name in
            guard case .type(let found) = index.find(name, from: type.file, elsewhere: true) else { return nil }
            return [.protocol, .alias].contains(found.kind) ? found : nil
        }
    }

    func isCodable(_ type: DeclaredType) -> Bool {
        type.hasAttribute("Wire") || conforms(type, to: ["Codable", "DeltaRecord", "DeltaState"])
            || (conforms(type, to: ["Encodable"]) && conforms(type, to: ["Decodable"]))
    }

    /// Returns true if the declaration determines the JSON. Otherwise reports an error.
    private func isReadable(_ type: DeclaredType, isAsDeclared: Bool) -> Bool {
        guard isCodable(type) else {
            problems.error(
                type.location,
                "'\(type.qualifiedName)' is sent, but the sources do not declare it Codable; if a macro does, "
                    + "write '// trebuchet: TypeScript = …' above it")
            return false
        }
        guard !isAsDeclared else { return true }
        let custom = (type.allMembers.map { ($0.node, $0.file) } + membersOfProtocols(of: type)).compactMap(
            customCoding)
        // The encoded form matters more than the decoded one.
        guard let found = custom.first(where: { $0.what == "encode(to:)" }) ?? custom.first else { return true }
        problems.error(
            found.location,
            "'\(type.qualifiedName)' has a custom '\(found.what)', so its JSON form is unknown; write "
                + "'// trebuchet: TypeScript = …' above the type, or '// trebuchet: as declared' if the JSON has the declared members"
        )
        return false
    }

    /// Returns the members from extensions of a type's protocols, including protocols that the sources do not declare.
    private func membersOfProtocols(of type: DeclaredType) -> [(DeclSyntax, SourceFile)] {
        var seen: Set<Int> = [type.id]
        var waiting = [type]
        var found: [(DeclSyntax, SourceFile)] = []
        while let next = waiting.popLast() {
            for parent in protocols(of: next) where seen.insert(parent.id).inserted {
                found += parent.extensions.flatMap { part in part.members.map { ($0, part.file) } }
                waiting.append(parent)
            }
            for part in next.inheritedNames.flatMap({ index.foreignExtensions[$0] ?? [] }) {
                found += index.conditions.members(part.node.memberBlock.members).map { ($0, part.file) }
            }
        }
        return found
    }

    private func customCoding(_ member: DeclSyntax, _ file: SourceFile) -> (what: String, location: SourcePosition)? {
        if let function = member.as(FunctionDeclSyntax.self), !function.modifiers.isStatic {
            return WireName.method(function) == "encode(to:)" ? ("encode(to:)", file.location(of: function.name)) : nil
        }
        guard let initializer = member.as(InitializerDeclSyntax.self) else { return nil }
        let parameters = initializer.signature.parameterClause.parameters
        guard parameters.map(\.firstName.plainText) == ["from"],
            parameters.first?.type.trimmedDescription.contains("Decoder") == true
        else { return nil }
        return ("init(from:)", file.location(of: initializer.initKeyword))
    }

    private func checkClass(_ type: DeclaredType) {
        for name in ["Observable", "Model"] where type.hasAttribute(name) {
            problems.error(
                type.location,
                "'\(type.qualifiedName)' is marked '@\(name)', which writes other members than are declared; use a struct"
            )
        }
        for name in type.inheritedNames {
            guard case .type(let found) = index.find(name, from: type.file, elsewhere: true), found.kind == .class
            else { continue }
            problems.error(
                type.location,
                "'\(type.qualifiedName)' inherits from '\(name)', which writes its own members; use a struct")
        }
    }

    // MARK: Stored properties

    /// A stored property of a declared type.
    struct StoredProperty {
        let name: String
        let type: TypeSyntax?
        let node: VariableDeclSyntax
        let location: SourcePosition
    }

    func storedProperties(of type: DeclaredType) -> [StoredProperty] {
        let scope = Scope(type.file, in: type, integers: .number)
        return type.members.flatMap { member -> [StoredProperty] in
            guard let variable = member.as(VariableDeclSyntax.self), !variable.modifiers.isStatic else { return [] }
            let bindings = Array(variable.bindings)
            return bindings.enumerated().compactMap { position, binding in
                guard !binding.isComputed, let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier
                else {
                    return nil
                }
                // In `var a, b: Int`, a name has the type of the next one with a type.
                let written =
                    binding.typeAnnotation?.type
                    ?? (binding.initializer == nil
                        ? bindings[position...].first { $0.typeAnnotation != nil }?.typeAnnotation?.type : nil)
                return StoredProperty(
                    name: name.plainText,
                    type: written ?? binding.initializer.flatMap { self.type(of: $0.value, scope) },
                    node: variable, location: type.file.location(of: name))
            }
        }
    }

    private func members(of type: DeclaredType, _ integers: Integers) -> [ClientModel.Member] {
        let keys = codingKeys("CodingKeys", of: type)
        return storedProperties(of: type).compactMap { property in
            guard let key = keys?[property.name] ?? (keys == nil ? property.name : nil) else { return nil }
            return member(property, named: key, of: type, integers)
        }
    }

    private func member(
        _ property: StoredProperty, named key: String, of type: DeclaredType, _ outer: Integers
    ) -> ClientModel.Member? {
        let comments = Comments(property.node)
        let directives = directives(comments, at: property.location)
        var isOptional = property.type.map(Self.isWrittenOptional) ?? false
        var read: WireType?
        if let custom = customTypeName(directives) {
            read = .custom(custom)
        } else {
            guard let written = property.type else {
                problems.error(
                    property.location,
                    "the type of '\(property.name)' cannot be inferred; write it, as in '\(property.name): Int'")
                return nil
            }
            if property.node.modifiers.contains(where: { $0.name.tokenKind == .keyword(.lazy) }) {
                problems.error(
                    property.location, "'\(property.name)' is lazy, and such a property is written under another name")
            }
            var scope = Scope(type.file, in: type, integers: integers(directives, else: outer))
            scope.fallback = property.location
            var type = self.read(written, scope)
            isOptional = type.isOptional
            if isOptional, case .optional(let wrapped) = type { type = wrapped }
            read = type
        }
        guard let read else { return nil }
        if customTypeName(directives) == nil, let wrapper = wrapper(of: property.node) {
            if wrapper != "DeltaValue" {
                problems.error(
                    property.location,
                    "the JSON form of the property wrapper '@\(wrapper)' is unknown; write '// trebuchet: TypeScript = …' "
                        + "above '\(property.name)'")
            }
            // A wrapper is written even if its value is nil.
            return ClientModel.Member(
                name: key, type: isOptional ? .optional(read) : read, documentation: comments.documentation)
        }
        return ClientModel.Member(
            name: key, type: read, isOptional: isOptional, documentation: comments.documentation)
    }

    private static func isWrittenOptional(_ type: TypeSyntax) -> Bool {
        type.is(OptionalTypeSyntax.self) || type.is(ImplicitlyUnwrappedOptionalTypeSyntax.self)
            || type.as(IdentifierTypeSyntax.self)?.name.text == "Optional"
    }

    /// Returns the name of a property's wrapper. An attribute with a lower-case name belongs to the language.
    private func wrapper(of node: VariableDeclSyntax) -> String? {
        index.conditions.attributes(node.attributes).map(\.plainName).first { name in
            name.first?.isUppercase == true && !["MainActor", "ObservationIgnored"].contains(name)
        }
    }

    // MARK: Keys

    /// Returns the keys by the names of the members or cases; nil if the type has no such enum.
    func codingKeys(_ name: String, of type: DeclaredType) -> [String: String]? {
        var found = type.nested[name]
        if let alias = found?.node.as(TypeAliasDeclSyntax.self) {
            let path = DeclarationIndex.path(alias.initializer.value)
            found = path.last.flatMap { last in
                type.nested[last] ?? type.parent?.nested[last]
                    ?? {
                        if case .type(let found) = index.find(last, from: type.file, elsewhere: true) {
                            found
                        } else {
                            nil
                        }
                    }()
            }
        }
        guard let keys = found else { return nil }
        guard keys.kind == .enumeration else {
            problems.error(
                keys.location,
                "'\(keys.qualifiedName)' is not an enum; use an enum, or write '// trebuchet: TypeScript = …' above '\(type.qualifiedName)'"
            )
            return nil
        }
        guard conforms(keys, to: ["CodingKey"]) else { return nil }
        var result: [String: String] = [:]
        for element in elements(of: keys) {
            // Integer keys use their case names as text.
            let text = element.rawValue?.value.as(StringLiteralExprSyntax.self)?.representedLiteralValue
            result[element.name.plainText] = text ?? element.name.plainText
        }
        return result
    }

    // MARK: Enums

    func elements(of type: DeclaredType) -> [EnumCaseElementSyntax] {
        type.members.flatMap { $0.as(EnumCaseDeclSyntax.self).map { Array($0.elements) } ?? [] }
    }

    private func cases(of type: DeclaredType, _ outer: Integers) -> [ClientModel.Case] {
        let keys = codingKeys("CodingKeys", of: type)
        let declarations = type.members.compactMap { $0.as(EnumCaseDeclSyntax.self) }
        if declarations.isEmpty {
            problems.error(type.location, "'\(type.qualifiedName)' has no cases and therefore no value to send")
        }
        return declarations.flatMap { declaration -> [ClientModel.Case] in
            let comments = Comments(declaration)
            let location = type.file.location(of: declaration)
            let directives = directives(comments, at: location)
            return declaration.elements.compactMap { element in
                let name = element.name.plainText
                guard let key = keys?[name] ?? (keys == nil ? name : nil) else { return nil }
                let members = values(of: element, named: name, of: type, directives, outer)
                return ClientModel.Case(name: key, members: members, documentation: comments.documentation)
            }
        }
    }

    private func values(
        of element: EnumCaseElementSyntax, named name: String, of type: DeclaredType, _ directives: [Directive],
        _ outer: Integers
    ) -> [ClientModel.Member] {
        let keys = codingKeys(name.prefix(1).uppercased() + name.dropFirst() + "CodingKeys", of: type)
        let scope = Scope(type.file, in: type, integers: integers(directives, else: outer))
        let parameters = Array(element.parameterClause?.parameters ?? [])
        return parameters.enumerated().compactMap { position, parameter in
            let label = parameter.firstName?.plainText ?? "_"
            let own = label == "_" ? "_\(position)" : label
            guard let key = keys?[own] ?? (keys == nil ? own : nil) else { return nil }
            if let custom = customTypeName(parameters.count == 1 ? directives : []) {
                return ClientModel.Member(
                    name: key, type: .custom(custom), isOptional: Self.isWrittenOptional(parameter.type))
            }
            let read = self.read(parameter.type, scope)
            guard case .optional(let wrapped) = read else { return ClientModel.Member(name: key, type: read) }
            return ClientModel.Member(name: key, type: wrapped, isOptional: true)
        }
    }
}

extension PatternBindingSyntax {
    /// True if it has a getter. A property with only observers is stored.
    var isComputed: Bool {
        switch accessorBlock?.accessors {
        case .getter: true
        case .accessors(let list):
            list.contains { !["willSet", "didSet"].contains($0.accessorSpecifier.text) }
        case nil: false
        @unknown default: true
        }
    }
}
