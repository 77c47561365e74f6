//! Writes: create, update and status update, with everything a write passes through on its way to the store.
//!
//! Requests and controllers use the same functions, so a controller that creates a pod is refused by the same
//! quota, with the same words, as a client. Decoding of request bodies is not done here (see `typed`).

use std::sync::Arc;

use serde_json::Value;

use crate::embedded::api::admission;
use crate::embedded::api::canonical;
use crate::embedded::api::defaults;
use crate::embedded::api::field::{FieldError, Path};
use crate::embedded::api::managed::{self, Writer};
use crate::embedded::api::status::Status;
use crate::embedded::api::validate;
use crate::embedded::kind::Kind;
use crate::embedded::patch::{Patch, PatchError};
use crate::embedded::store::StoreError;
use crate::embedded::world::World;

/// Longest prefix that `generateName` keeps: names have 63 bytes, five of them random.
const GENERATED_PREFIX_MAX: usize = 58;
/// Letters added to `generateName`.
const GENERATED_LETTERS: usize = 5;
/// How often another generated name is tried when one is taken.
const GENERATE_TRIES: usize = 8;

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but the status.
    Main,
    Status,
}

impl Part {
    /// The name that `managedFields` gives it.
    pub fn subresource(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
        }
    }
}

/// What a write is about.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'a str,
    pub name: &'a str,
    pub part: Part,
}

/// How a write is to be done.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Field manager that the write is noted under.
    pub manager: String,
    /// Full admission and defaulting, nothing stored.
    pub dry_run: bool,
}

impl WriteOptions {
    /// The plain options of a component or client of this name.
    pub fn of(manager: &str) -> WriteOptions {
        WriteOptions {
            manager: manager.to_owned(),
            dry_run: false,
        }
    }
}

/// Creates an object. `namespace` is that of the request path, empty for cluster-scoped kinds.
pub fn create(
    world: &mut World,
    kind: Kind,
    namespace: &str,
    object: Value,
    options: &WriteOptions,
) -> Result<Arc<Value>, Status> {
    let place = Place {
        kind,
        namespace,
        name: "",
        part: Part::Main,
    };
    let writer = Writer::update(options, Part::Main, world.now());
    create_as(world, &place, object, &writer, options.dry_run)
}

/// Objects that the store takes, Events left out. A one-node cluster holds some hundreds; a controller that runs away
/// (five million replicas) meets the answer of a full etcd and not the end of memory.
pub const MAX_OBJECTS: usize = 2_000;

/// Creates an object in a writer's name. The object's own name counts, not the place's.
pub fn create_as(
    world: &mut World,
    place: &Place<'_>,
    object: Value,
    writer: &Writer,
    dry_run: bool,
) -> Result<Arc<Value>, Status> {
    let kind = place.kind;
    if world.store.count() >= MAX_OBJECTS {
        return Err(Status::unreasoned(
            "etcdserver: mvcc: database space exceeded",
        ));
    }
    let object = prepare_new(world, kind, place.namespace, object, writer)?;
    if dry_run {
        return Ok(Arc::new(object));
    }
    world.store.insert(kind, object).map_err(|error| {
        debug_assert_eq!(
            error,
            StoreError::Exists,
            "insert fails only on a taken name"
        );
        Status::unreasoned("the object could not be stored")
    })
}

/// Everything a new object passes through, up to the store.
fn prepare_new(
    world: &mut World,
    kind: Kind,
    namespace: &str,
    mut object: Value,
    writer: &Writer,
) -> Result<Value, Status> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    fit_namespace(kind, namespace, &mut object)?;
    if !text(&object["metadata"]["resourceVersion"]).is_empty() {
        return Err(Status::unreasoned(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    object["kind"] = kind.info().name.into();
    object["apiVersion"] = kind.api_version().into();
    canonical::tidy(kind, &mut object);
    defaults::apply(kind, &mut object);
    admission::mutate_new(world, kind, &mut object)?;
    let named = fill_name(world, kind, namespace, &mut object)?;
    if kind.has_status()
        && let Some(map) = object.as_object_mut()
    {
        map.remove("status");
    }
    let uid = world.uid();
    let now = world.now().seconds_text();
    let metadata = &mut object["metadata"];
    metadata["uid"] = uid.into();
    metadata["creationTimestamp"] = now.into();
    if let Some(map) = metadata.as_object_mut() {
        map.remove("deletionTimestamp");
        map.remove("deletionGracePeriodSeconds");
        map.remove("selfLink");
        map.remove("managedFields");
        map.remove("generation");
        if kind.has_generation() {
            map.insert("generation".to_owned(), 1.into());
        }
    }
    defaults::fill_new(world, kind, &mut object);
    let errors = validate::new_object(kind, &object);
    if !errors.is_empty() {
        return Err(Status::invalid(kind, &named, &errors));
    }
    managed::note(kind, None, &mut object, writer);
    admission::validate_new(world, kind, &object)?;
    if world.store.get(kind, namespace, &named).is_some() {
        return Err(Status::exists(kind, &named));
    }
    Ok(object)
}

/// Replaces an object, or its status, by a whole new one.
pub fn update(
    world: &mut World,
    kind: Kind,
    namespace: &str,
    name: &str,
    part: Part,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Arc<Value>, Status> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    fit_namespace(kind, namespace, &mut object)?;
    let given = text(&object["metadata"]["name"]);
    if given.is_empty() {
        return Err(Status::bad_request("name must be provided"));
    }
    if given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let writer = Writer::update(options, part, world.now());
    let old = world
        .store
        .get(kind, namespace, name)
        .cloned()
        .ok_or_else(|| Status::not_found(kind, name))?;
    replace(world, kind, &old, object, &writer, options.dry_run)
}

/// Applies a patch to an object or its status. `check` sees the patched object before it goes on: it decodes
/// it where the patch came from outside.
pub fn patch(
    world: &mut World,
    place: &Place<'_>,
    patch: &Patch,
    options: &WriteOptions,
    check: impl FnOnce(&mut Value) -> Result<(), Status>,
) -> Result<Arc<Value>, Status> {
    let Place {
        kind,
        namespace,
        name,
        part,
    } = *place;
    let old = world
        .store
        .get(kind, namespace, name)
        .cloned()
        .ok_or_else(|| Status::not_found(kind, name))?;
    let mut object = patch.apply_to(kind, &old).map_err(patch_refusal)?;
    if matches!(patch, Patch::Strategic(_)) {
        // Such a patch cannot make another type of an object; what it says of it is passed over.
        object["kind"] = old["kind"].clone();
        object["apiVersion"] = old["apiVersion"].clone();
    }
    let uid = text(&object["metadata"]["uid"]);
    if !uid.is_empty() && object["metadata"]["uid"] != old["metadata"]["uid"] {
        let at = Path::new("metadata").child("uid");
        let error = FieldError::invalid(&at, &object["metadata"]["uid"], "field is immutable");
        return Err(Status::invalid(kind, name, &[error]));
    }
    check(&mut object)?;
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    let given = text(&object["metadata"]["name"]);
    if given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    fit_namespace(kind, namespace, &mut object)?;
    let writer = Writer::update(options, part, world.now());
    replace(world, kind, &old, object, &writer, options.dry_run)
}

fn patch_refusal(error: PatchError) -> Status {
    match error {
        PatchError::Rejected => Status::bad_patch(error.to_string()),
        PatchError::Malformed(why) => Status::bad_request(why),
        PatchError::NoMergeKey { .. } => Status::unreasoned(error.to_string()),
    }
}

/// Puts `object` in the place of `old`: preconditions, carried-over fields, defaults, validation, admission,
/// field managers, store. The last finalizer's removal from a deleted object removes it.
pub fn replace(
    world: &mut World,
    kind: Kind,
    old: &Arc<Value>,
    mut object: Value,
    writer: &Writer,
    dry_run: bool,
) -> Result<Arc<Value>, Status> {
    let (namespace, name) = crate::embedded::store::key_of(old);
    check_preconditions(kind, &name, old, &object)?;
    carry_over(kind, old, &mut object, writer.part);
    canonical::tidy(kind, &mut object);
    defaults::apply(kind, &mut object);
    defaults::keep_allocated(kind, old, &mut object);
    let errors = validate::changed_object(kind, old, &object, writer.part);
    if !errors.is_empty() {
        return Err(Status::invalid(kind, &name, &errors));
    }
    admission::check_update(world, kind, old, &object, writer.part)?;
    managed::note(kind, Some(old), &mut object, writer);
    if dry_run {
        return Ok(Arc::new(object));
    }
    let stored = world
        .store
        .replace(kind, object)
        .map_err(|_| Status::not_found(kind, &name))?;
    if released(kind, &stored) {
        let _ = world.store.remove(kind, &namespace, &name);
    }
    Ok(stored)
}

/// Whether nothing holds a deleted object any longer.
pub(crate) fn released(kind: Kind, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let waiting = match kind {
        Kind::Namespace => object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty()),
        _ => metadata["deletionGracePeriodSeconds"]
            .as_i64()
            .is_some_and(|seconds| seconds > 0),
    };
    metadata["deletionTimestamp"].is_string() && !has_finalizers(object) && !waiting
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

fn check_preconditions(kind: Kind, name: &str, old: &Value, object: &Value) -> Result<(), Status> {
    let uid = text(&object["metadata"]["uid"]);
    let real = text(&old["metadata"]["uid"]);
    if !uid.is_empty() && uid != real {
        let why =
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {real}");
        return Err(Status::conflict(kind, name, &why));
    }
    let version = text(&object["metadata"]["resourceVersion"]);
    if !version.is_empty() && version != "0" && version != text(&old["metadata"]["resourceVersion"])
    {
        return Err(Status::modified(kind, name));
    }
    Ok(())
}

/// Fields that a write cannot change come from the stored object.
fn carry_over(kind: Kind, old: &Value, object: &mut Value, part: Part) {
    if part == Part::Status {
        let status = object["status"].take();
        let fields = object["metadata"]["managedFields"].take();
        *object = old.clone();
        set_or_remove(object, "status", status);
        if !fields.is_null() {
            object["metadata"]["managedFields"] = fields;
        }
        return;
    }
    object["kind"] = old["kind"].clone();
    object["apiVersion"] = old["apiVersion"].clone();
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "generateName",
        "selfLink",
    ] {
        set_or_remove(
            &mut object["metadata"],
            field,
            old["metadata"][field].clone(),
        );
    }
    if kind.has_status() {
        set_or_remove(object, "status", old["status"].clone());
    }
}

fn set_or_remove(object: &mut Value, field: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        if value.is_null() {
            map.remove(field);
        } else {
            map.insert(field.to_owned(), value);
        }
    }
}

/// Fills `metadata.namespace` from the path, or refuses another one.
fn fit_namespace(kind: Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
    let given = text(&object["metadata"]["namespace"]);
    if !given.is_empty() && given != namespace {
        return Err(Status::bad_request(if kind.info().namespaced {
            "the namespace of the provided object does not match the namespace sent on the request"
        } else {
            "namespace is not allowed on this type"
        }));
    }
    if kind.info().namespaced {
        object["metadata"]["namespace"] = namespace.into();
    }
    Ok(())
}

/// Gives an object without a name one from `generateName`; answers the name (empty: none was to be had, which
/// validation reports).
fn fill_name(
    world: &mut World,
    kind: Kind,
    namespace: &str,
    object: &mut Value,
) -> Result<String, Status> {
    let given = text(&object["metadata"]["name"]).to_owned();
    let prefix = text(&object["metadata"]["generateName"]).to_owned();
    if !given.is_empty() || prefix.is_empty() {
        return Ok(given);
    }
    let kept: String = prefix.chars().take(GENERATED_PREFIX_MAX).collect();
    for _ in 0..GENERATE_TRIES {
        let name = format!("{kept}{}", world.suffix(GENERATED_LETTERS));
        if world.store.get(kind, namespace, &name).is_none() {
            object["metadata"]["name"] = name.as_str().into();
            return Ok(name);
        }
    }
    Err(Status::exists(kind, &prefix))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
