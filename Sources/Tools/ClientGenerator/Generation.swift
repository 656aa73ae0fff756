/// A client generated from Swift sources: text in, text out.
package struct Generation: Sendable {
    /// The options of the generator.
    package struct Options: Sendable {
        /// True to generate `bigint` for 64-bit integers without a comment that specifies another type.
        package var usesBigint = false
        /// The flags that are true in `#if`.
        package var defines: Set<String> = []
        /// The path from which the generated file imports the client library.
        package var runtime = "./trebuchet.js"
        /// The names of actors in the paths of an OpenAPI document, by the Swift names of their types.
        package var actorNames: [String: String] = [:]
        /// The title of an OpenAPI document.
        package var title = "Actors"
        /// The command in the first line of the file.
        package var command = "trebuchet generate typescript"

        package init() {}
    }

    package let model: ClientModel
    /// The errors and warnings in source order.
    package let problems: [GeneratorDiagnostic]
    private let options: Options

    /// Reads the sources.
    ///
    /// - Parameter sources: the paths, as used in messages, and the texts.
    package init(_ sources: [(path: String, text: String)], options: Options = Options()) {
        self.options = options
        let problems = DiagnosticList()
        let files = sources.sorted { $0.path < $1.path }.map { SourceFile(path: $0.path, text: $0.text) }
        for file in files {
            guard let (location, message) = file.parseError else { continue }
            problems.warn(location, "syntax error; declarations here may be missing: \(message)")
        }
        let index = DeclarationIndex(files, conditions: BuildConditions(defines: options.defines))
        let builder = ModelBuilder(index, problems: problems, usesBigint: options.usesBigint)
        model = builder.build()
        if model.actors.isEmpty, !problems.hasErrors {
            problems.error(nil, "the sources have no actor with '@Trebuchet' and no '@Resolvable' protocol")
        }
        self.problems = problems.all
    }

    package var hasErrors: Bool { problems.contains { $0.severity == .error } }

    package var typeScript: String {
        var writer = TypeScriptWriter(model, runtime: options.runtime, command: options.command)
        return writer.file()
    }

    package var schema: String { SchemaWriter(model: model).file() }

    /// Returns an OpenAPI document. Throws the reason why there is none.
    package func openAPI() throws(GeneratorDiagnostic) -> String {
        let unknown = options.actorNames.keys.filter { name in !model.actors.contains { $0.swiftName == name } }
        if let name = unknown.min() { throw .error("'--actor \(name)': the sources have no such actor") }
        var writer = OpenAPIWriter(model, names: options.actorNames)
        do throws(OpenAPIWriter.Collision) {
            return try writer.file(title: options.title)
        } catch {
            throw .error(
                "'\(error.path)' is a path of both '\(error.actors[0])' and '\(error.actors[1])'; give their names, as in "
                    + "'--actor \(error.actors[0])=NAME'")
        }
    }
}
