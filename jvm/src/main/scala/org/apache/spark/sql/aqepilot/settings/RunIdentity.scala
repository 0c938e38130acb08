package org.apache.spark.sql.aqepilot.settings

/** Something that was found, and where.
  *
  * @param source
  *   one of [[RunIdentity.Sources]]; of an attempt the setting or environment variable that says it
  */
final case class Found[T](value: T, source: String)

/** Which run of which job an application is.
  *
  * @param attempt
  *   how many times its scheduler has started this run, this time included; none where nothing says so
  */
final case class RunIdentity(
    job: Found[String],
    run: Found[String],
    attempt: Option[Found[Int]]
) {
  def isRetry: Boolean = attempt.exists(RunIdentity.isRetry)

  /** The same of a query that a dbt model is made by; our own setting's name wins. */
  def ofModel(model: Option[String]): RunIdentity =
    model
      .filter(_ => job.source != RunIdentity.Setting)
      .fold(this)(name => copy(job = Found(name, RunIdentity.Dbt)))
}

/** Finds it by what schedulers leave behind. Job and run are looked up by themselves, each in this order: our own
  * settings, the comment of a query of dbt, OpenLineage's settings for the parent of a Spark application, the environment variables of an Airflow task
  * (`AIRFLOW_CTX_*`, as `airflow.utils.operator_helpers` names them), and else the application itself.
  */
object RunIdentity {
  val JobKey = "spark.aqepilot.job"
  val RunKey = "spark.aqepilot.run"
  val AttemptKey = "spark.aqepilot.attempt"

  /** Set by Spark where YARN starts the driver (`SparkContext.applicationAttemptId`): 1 at first. */
  val AppAttemptKey = "spark.app.attempt.id"
  val AirflowTry = "AIRFLOW_CTX_TRY_NUMBER"

  val Setting = "SETTING"
  val Dbt = "DBT"
  val OpenLineage = "OPENLINEAGE"
  val Airflow = "AIRFLOW"
  val UnknownRun = "UNKNOWN_RUN"

  /** A source of job and run, with its meaning. */
  val Sources: Seq[(String, String)] = Seq(
    Setting -> s"$JobKey, $RunKey",
    Dbt -> "the model's node_id in the comment that dbt gives a query, such as model.shop.orders; no run",
    OpenLineage -> "spark.openlineage.parentJobName and its parentRunId",
    Airflow -> "AIRFLOW_CTX_DAG_ID, a dot and AIRFLOW_CTX_TASK_ID; AIRFLOW_CTX_DAG_RUN_ID",
    UnknownRun -> "nothing else is known: spark.app.name, and the application's id"
  )

  /** @param setting
    *   of the session, which has those of the application
    * @param environment
    *   the driver's
    */
  def of(
      setting: String => Option[String],
      environment: String => Option[String],
      appName: String,
      appId: String
  ): RunIdentity = {
    def set(key: String, source: String) = notEmpty(setting(key)).map(Found(_, source))
    def exported(name: String) = notEmpty(environment(name))
    val task = for (dag <- exported("AIRFLOW_CTX_DAG_ID"); task <- exported("AIRFLOW_CTX_TASK_ID"))
      yield Found(s"$dag.$task", Airflow)
    RunIdentity(
      set(JobKey, Setting)
        .orElse(set("spark.openlineage.parentJobName", OpenLineage))
        .orElse(task)
        .getOrElse(Found(appName, UnknownRun)),
      set(RunKey, Setting)
        .orElse(set("spark.openlineage.parentRunId", OpenLineage))
        .orElse(exported("AIRFLOW_CTX_DAG_RUN_ID").map(Found(_, Airflow)))
        .getOrElse(Found(appId, UnknownRun)),
      attempt(setting, environment)
    )
  }

  /** Our own setting, else the larger of the others: YARN may start the driver again within one try of Airflow, and
    * Airflow's next try is YARN's first attempt.
    */
  def attempt(
      setting: String => Option[String],
      environment: String => Option[String]
  ): Option[Found[Int]] = {
    def counted(name: String, text: Option[String]) =
      notEmpty(
        text
      ).filter(_.matches("\\d{1,9}")).map(n => Found(n.toInt, name)).filter(_.value > 0)
    counted(AttemptKey, setting(AttemptKey)).orElse {
      val signals = counted(AppAttemptKey, setting(AppAttemptKey)) ++
        counted(AirflowTry, environment(AirflowTry))
      signals.toSeq.sortBy(-_.value).headOption
    }
  }

  def isRetry(attempt: Found[Int]): Boolean = attempt.value > 1

  private def notEmpty(text: Option[String]): Option[String] = text.map(_.trim).filter(_.nonEmpty)
}
